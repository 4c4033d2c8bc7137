/** Processes of the program of this folder, one after another on the same run folder, and what came of it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('program.ts', import.meta.url));

export interface LifeOptions {
  /** Of the home of its server, and of its run folder `run`. */
  readonly folder: string;
  readonly model: string;
  readonly kind: 'grpo' | 'sft';
  readonly url?: string;
  readonly resumes?: boolean;
  readonly die?: string;
  readonly hold?: string;
  readonly more?: readonly string[];
}

export interface LifeEnd {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Life {
  readonly child: ChildProcess;
  /** Resolves when the standard output or error matches; rejects when it ends without. */
  says(pattern: RegExp): Promise<void>;
  /** Ends a hold. */
  goOn(): void;
  readonly end: Promise<LifeEnd>;
}

export function runFolder(folder: string): string {
  return join(folder, 'run');
}

export function startLife({ folder, model, kind, url, resumes = false, die, hold, more = [] }: LifeOptions): Life {
  const options = {
    kind,
    model,
    run: runFolder(folder),
    url,
    die,
    hold,
    resume: resumes ? runFolder(folder) : undefined,
  };
  const args = Object.entries(options).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value]));
  const env = { PATH: process.env.PATH ?? '', HOME: folder, LOOPWRIGHT_HOME: join(folder, 'home') };
  const child = spawn(process.execPath, ['--import', 'tsx', program, ...args, ...more], { env });
  let [stdout, stderr] = ['', ''];
  const watchers = new Set<() => void>();
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
    for (const look of watchers) look();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
    for (const look of watchers) look();
  });
  const end = new Promise<LifeEnd>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
  return {
    child,
    end,
    goOn: () => void child.stdin.write('\n'),
    says: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (pattern.test(stdout) || pattern.test(stderr)) resolve();
        };
        watchers.add(look);
        look();
        end.then((ended) => reject(new Error(`it ended without ${pattern}: ${ended.stdout}${ended.stderr}`)), reject);
      }),
  };
}

/** What must be the same, however often the run was cut off. */
export interface Outcome {
  /** Digests of the files of the last weights, and of the last state with the optimizer. */
  readonly weights: readonly string[];
  readonly state: readonly string[];
  /** Lines of `metrics.jsonl` without what has to do with time. */
  readonly metrics: readonly Readonly<Record<string, unknown>>[];
  /** Lines of `samples.jsonl`: what was sampled from which problem, with which logprobs and reward. */
  readonly samples: readonly unknown[];
  /** Lines of `alarms.jsonl`. */
  readonly alarms: readonly Readonly<Record<string, unknown>>[];
}

export async function outcomeOf(folder: string, { stdout }: Pick<LifeEnd, 'stdout'>): Promise<Outcome> {
  const said = stdout.split('\n').find((line) => line.startsWith('{'));
  if (said === undefined) throw new Error(`it came to no end: ${stdout}`);
  const { weights, state } = JSON.parse(said) as Pick<Outcome, 'weights' | 'state'>; // true: the program prints them
  const metrics = (await linesOf(folder, 'metrics.jsonl')).map((line) =>
    Object.fromEntries(Object.entries(line).filter(([name]) => !isOfTime(name))),
  );
  const [samples, alarms] = [await linesOf(folder, 'samples.jsonl'), await linesOf(folder, 'alarms.jsonl')];
  return { weights, state, metrics, samples, alarms };
}

/** How long something took, and shares of that. */
function isOfTime(name: string): boolean {
  return name === 'time' || name.startsWith('time/') || name.startsWith('engine/');
}

async function linesOf(folder: string, name: string): Promise<Readonly<Record<string, unknown>>[]> {
  const text = await readFile(join(runFolder(folder), name), 'utf8').catch(() => '');
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>); // true: every line is an object
}
