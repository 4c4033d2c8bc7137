/** What works on an engine share: the engine itself, tokens, datums, a step. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { LocalEngine, type LocalEngineOptions } from '@loopwright/engine/local';
import { type AdamParams, type Datum, floatTensor, idTensor } from '@loopwright/protocol';
import type { Settings } from './report.js';

/** Runs work on an engine that is closed, with its files, at the end. */
export async function withEngine(
  { modelDirectory, threads, lowMemory, samplerPrecision }: Settings,
  work: (engine: LocalEngine, folder: string) => Promise<void>,
  options: Partial<LocalEngineOptions> = {},
): Promise<void> {
  const cacheDirectory = await mkdtemp(path.join(tmpdir(), 'loopwright-bench-'));
  try {
    const engine = await LocalEngine.load(
      { id: 'bench', directory: modelDirectory },
      { cacheDirectory, threads, lowMemory, samplerPrecision, ...options },
    );
    await work(engine, cacheDirectory);
    await engine[Symbol.asyncDispose]();
  } finally {
    await rm(cacheDirectory, { recursive: true, force: true });
  }
}

/** Ids that repeat nowhere near, within the vocabulary. */
export function ids(length: number, salt: number, vocabSize: number): Int32Array {
  return Int32Array.from({ length }, (_, i) => 3 + ((i * 7919 + salt * 104_729) % (vocabSize - 200)));
}

/** B sequences of S tokens, every token a target. */
export function trainingData({ model }: LocalEngine, B: number, S: number): Datum[] {
  return Array.from({ length: B }, (_, b) => {
    const sequence = ids(S + 1, b, model.vocabSize);
    return {
      modelInput: sequence.slice(0, S),
      targetTokens: idTensor(sequence.slice(1)),
      weights: floatTensor(new Float32Array(S).fill(1 / (B * S))),
    };
  });
}

export const adam: AdamParams = {
  learningRate: 1e-4,
  beta1: 0.9,
  beta2: 0.999,
  eps: 1e-8,
  weightDecay: 0.01,
  gradClipNorm: 0,
  loraPlusLrRatio: 1,
};
