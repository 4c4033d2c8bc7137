/** The other tools: jobs for `peers.py`, which runs in a Python of the caller's. */
import { spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Cases } from './cases.js';
import type { Answer } from './ours.js';

const script = fileURLToPath(new URL('../peers.py', import.meta.url));

/** llama.cpp's names of the types that the engine reads. */
export type QuantizeType = 'F32' | 'F16' | 'BF16' | 'Q8_0' | 'Q4_0' | 'Q4_1';

export type Job =
  | {
      readonly kind: 'quantize';
      readonly name: string;
      readonly path: string;
      readonly to: string;
      readonly type: QuantizeType;
    }
  | {
      readonly kind: 'transformers';
      readonly name: string;
      readonly path: string;
      readonly adapter?: string;
      readonly cases: Cases;
    }
  | { readonly kind: 'llama'; readonly name: string; readonly path: string; readonly cases: Cases };

export interface PeerAnswers {
  readonly versions: Readonly<Record<string, string>>;
  readonly answers: ReadonlyMap<string, Answer>;
}

interface AnswersFile {
  readonly versions: Readonly<Record<string, string>>;
  readonly answers: Readonly<
    Record<
      string,
      {
        readonly logprobs: readonly (readonly number[])[];
        readonly greedy: readonly (readonly number[])[];
        readonly greedy_texts: readonly string[] | null;
        readonly tokens: readonly (readonly number[])[] | null;
      }
    >
  >;
}

/** Does jobs in their order, in one process. @param folder for its files */
export async function askPeers(
  jobs: readonly Job[],
  { python, folder }: { readonly python: string; readonly folder: string },
): Promise<PeerAnswers> {
  const [jobsFile, answersFile] = [join(folder, 'jobs.json'), join(folder, 'answers.json')];
  await writeFile(jobsFile, JSON.stringify(jobs.map(jobJson)));
  const code = await new Promise<number | null>((resolve, reject) => {
    const child = spawn(python, [script, jobsFile, answersFile], { stdio: ['ignore', 2, 2] });
    child.once('error', reject);
    child.once('exit', resolve);
  });
  if (code !== 0)
    throw new Error(`${python} ${script}: exit code ${code}; requirements.txt beside it says what it needs`);
  const { versions, answers } = JSON.parse(await readFile(answersFile, 'utf8')) as AnswersFile; // true: our script's
  const entries = Object.entries(answers).map(([name, { logprobs, greedy, greedy_texts, tokens }]) => {
    return [name, { logprobs, greedy, greedyTexts: greedy_texts ?? undefined, tokens: tokens ?? undefined }] as const;
  });
  return { versions, answers: new Map(entries) };
}

function jobJson(job: Job): object {
  if (job.kind === 'quantize') return job;
  const { sequences, prompts, newTokens, texts } = job.cases;
  return { ...job, cases: { sequences, prompts, new_tokens: newTokens, texts } };
}
