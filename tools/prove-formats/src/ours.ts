/** Our side, by the public paths: a loop that trains, clients that score and sample, and the `loopwright export` command. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type SamplingClient, type ServiceConnection, sftDatum } from 'loopwright';
import type { Cases } from './cases.js';

const command = fileURLToPath(new URL('../../../packages/loopwright/bin/loopwright.js', import.meta.url));

/** What a tool makes of the cases, ours or another; the texts are undefined where there is no tokenizer. */
export interface Answer {
  /** One less than the sequence has tokens: each but the first, given those before it. */
  readonly logprobs: readonly (readonly number[])[];
  readonly greedy: readonly (readonly number[])[];
  readonly greedyTexts: readonly string[] | undefined;
  readonly tokens: readonly (readonly number[])[] | undefined;
}

export interface OurAnswer extends Answer {
  /** By how much each greedy token is likelier than the next likeliest. */
  readonly gaps: readonly (readonly number[])[];
}

export interface TrainOptions {
  readonly baseModel: string;
  readonly sequences: Cases['sequences'];
  readonly steps: number;
  readonly learningRate: number;
}

/** A few steps, enough that weights in another place, order or scale would be seen. @returns the ARN of the adapter */
export async function train(service: ServiceConnection, options: TrainOptions): Promise<string> {
  const { baseModel, sequences, steps, learningRate } = options;
  const training = await service.createLoraTrainingClient({ baseModel, rank: 8, alpha: 16, seed: 1 });
  const data = sequences.map((ids) => sftDatum({ prompt: ids.slice(0, 2), completion: ids.slice(2) }));
  for (let step = 0; step < steps; step++) {
    const pass = training.forwardBackward(data, 'cross_entropy');
    await training.optimStep({ learningRate });
    await pass;
  }
  return (await training.saveWeightsForSampler({ description: 'proof of formats' })).modelPackageArn;
}

export async function answerOf(sampler: SamplingClient, cases: Cases, hasTokenizer: boolean): Promise<OurAnswer> {
  const logprobs = await Promise.all(
    cases.sequences.map(async (ids) => (await sampler.computeLogprobs(ids)).slice(1).map(Number)),
  );
  const greedy = await Promise.all(cases.prompts.map((prompt) => greedyOf(sampler, prompt, cases.newTokens)));
  const gaps = await Promise.all(greedy.map((tokens, i) => gapsOf(sampler, cases.prompts[i]!, tokens)));
  const tokenizer = hasTokenizer ? await sampler.getTokenizer() : undefined;
  return {
    logprobs,
    greedy,
    gaps,
    greedyTexts: tokenizer && greedy.map((tokens) => tokenizer.decode(tokens, { skipSpecialTokens: false })),
    tokens: tokenizer && cases.texts.map((text) => tokenizer.encode(text, { parseSpecialTokens: true })),
  };
}

/** The likeliest tokens, past any that would end an answer: one that stopped is gone on from. */
async function greedyOf(sampler: SamplingClient, prompt: readonly number[], count: number): Promise<number[]> {
  const tokens: number[] = [];
  while (tokens.length < count) {
    const { sequences } = await sampler.sample([...prompt, ...tokens], {
      maxTokens: count - tokens.length,
      temperature: 0,
    });
    tokens.push(...sequences[0]!.tokens);
  }
  return tokens;
}

async function gapsOf(
  sampler: SamplingClient,
  prompt: readonly number[],
  tokens: readonly number[],
): Promise<number[]> {
  const whole = [...prompt, ...tokens];
  const { topkPromptLogprobs = [] } = await sampler.sample(whole, { maxTokens: 1, topkPromptLogprobs: 2 });
  const top = topkPromptLogprobs.slice(prompt.length);
  return top.map(([first, second]) => first!.logprob - second!.logprob);
}

/** Runs `loopwright export` as users do. @returns its last event */
export async function exportModel(args: readonly string[]): Promise<Readonly<Record<string, unknown>>> {
  const child = spawn(process.execPath, [command, 'export', ...args, '--json'], { stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', () => resolve());
  });
  const last = stdout.trim().split('\n').at(-1);
  if (last === undefined || !last.startsWith('{')) throw new Error(`loopwright export said nothing: ${stderr}`);
  return JSON.parse(last) as Record<string, unknown>; // true: events are objects
}
