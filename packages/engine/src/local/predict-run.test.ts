import { defaultTargetModules } from '@loopwright/protocol';
import { tinyModelDirectory } from '@loopwright/testkit';
import { expect, it } from 'vitest';
import { predictModel } from './predict-run.js';

it('the memory of a run grows with its rows, its answers and its rank, within the room of keys and values', async () => {
  const of = async (rank: number, maxMemoryBytes = 8e9) =>
    predictModel(tinyModelDirectory('llama-tied'), {
      training: { type: 'lora', rank, alpha: rank, targetModules: defaultTargetModules },
      maxMemoryBytes,
    });
  const { runBytes, contextLength, maxMemoryBytes } = await of(16);
  const size = { rows: 256, promptTokens: 20, newTokens: 40 };
  const usual = runBytes(size);
  expect(contextLength).toBeGreaterThan(0);
  expect(maxMemoryBytes).toBe(8e9);
  expect(usual).toBeGreaterThan(170e6); // of a process without any model
  expect(runBytes({ ...size, rows: 512 })).toBeGreaterThan(usual);
  expect(runBytes({ ...size, newTokens: 80 })).toBeGreaterThan(usual);
  expect((await of(64)).runBytes(size)).toBeGreaterThan(usual);
  // Rows that don't fit wait, so they take no more.
  const tight = await of(16, 1e9);
  expect(tight.runBytes({ ...size, rows: 1e6 })).toBe(tight.runBytes({ ...size, rows: 2e6 }));
});
