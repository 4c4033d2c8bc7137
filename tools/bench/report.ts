/** One JSON line a work, in the form that the peers' scripts print too: best and median of the repeats, how it was measured. */

import { readdir, readFile } from 'node:fs/promises';
import { requirePrecisionName, type SamplerPrecision } from '@loopwright/engine';
import type { SamplerPath } from '@loopwright/protocol';

export interface Settings {
  readonly modelDirectory: string;
  readonly threads: number;
  readonly repeats: number;
  /** `wall` seconds, or `cpu` seconds of this process and its children for a machine that others use. */
  readonly clock: 'wall' | 'cpu';
  /** What is sampled from: the base, or a version of a LoRA r=32 session whose sampler has the adapter apart or merged. */
  readonly adapter: 'none' | SamplerPath;
  /** Sessions are made with the engine's low-memory option. */
  readonly lowMemory: boolean;
  /** Of decoding. */
  readonly samplerPrecision: SamplerPrecision;
  /** Prompt tokens of the sampling works. */
  readonly prompt: number;
  /** New tokens of the sampling works. */
  readonly newTokens: number;
}

export function settingsFrom(env: Readonly<Record<string, string | undefined>>): Settings {
  const modelDirectory = env.MODEL_DIR;
  if (modelDirectory === undefined) {
    throw new Error(
      'MODEL_DIR: expected the directory of a model in Hugging Face form (the figures in docs/results are of SmolLM2-135M-Instruct), got nothing',
    );
  }
  const number = (name: string, fallback: number) => Number(env[name] ?? fallback);
  return {
    modelDirectory,
    threads: number('THREADS', 2),
    repeats: number('REPEATS', 3),
    clock: env.CLOCK === 'cpu' ? 'cpu' : 'wall',
    adapter: env.ADAPTER === 'apart' || env.ADAPTER === 'merged' ? env.ADAPTER : 'none',
    lowMemory: env.MEMORY === 'low',
    samplerPrecision: requirePrecisionName(env.PRECISION ?? 'float32'),
    prompt: number('PROMPT', 64),
    newTokens: number('NEW', 64),
  };
}

/** Seconds by the chosen clock; differences count. */
export function seconds(clock: Settings['clock']): number {
  if (clock === 'wall') return performance.now() / 1000;
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** Seconds of each repeat after one warm-up that is not counted. */
export async function timed({ repeats, clock }: Settings, run: () => Promise<void>): Promise<number[]> {
  await run();
  const taken: number[] = [];
  for (let i = 0; i < repeats; i++) {
    const start = seconds(clock);
    await run();
    taken.push(seconds(clock) - start);
  }
  return taken;
}

export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!;
}

export function emit(
  line: { work: string; value: number; unit: string } & Readonly<Record<string, unknown>>,
  { threads, clock }: Pick<Settings, 'threads' | 'clock'>,
): void {
  const { work, value, unit, precision = 'float32', ...more } = line;
  const peer = precision === 'float32' ? 'loopwright fp32' : `loopwright ${precision}`;
  const round = (number: number) => Number(number.toPrecision(5));
  const shown = Object.fromEntries(
    Object.entries(more).map(([key, item]) => [key, typeof item === 'number' ? round(item) : item]),
  );
  process.stdout.write(`${JSON.stringify({ work, peer, value: round(value), unit, threads, clock, ...shown })}\n`);
}

export function peakMemoryMb(): number {
  return process.resourceUsage().maxRSS / 1024;
}

/** Largest resident size that a child process of this one has had, by Linux's own count. */
export async function enginePeakBytes(): Promise<number> {
  const names = (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry));
  const states = await Promise.all(names.map((pid) => readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')));
  const children = states.filter((state) => state.includes(`\nPPid:\t${process.pid}\n`));
  const peaks = children.map((state) => 1024 * Number(/\nVmHWM:\s+(\d+) kB/.exec(state)?.[1] ?? 0));
  return Math.max(0, ...peaks);
}
