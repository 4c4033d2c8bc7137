/** Sampling in int8 at the public door: other logprobs than those that are computed, the precision in the plan, the same bits in a replay. */
import { join } from 'node:path';
import { requirePrecision } from '@loopwright/engine/local';
import { temporaryDirectory } from '@loopwright/testkit';
import { connect } from 'loopwright';
import { expect, test } from 'vitest';
import { runCommand } from './support/command.js';
import { failureOf } from './support/failure.js';

const isExact = await requirePrecision('int8', 'cpu').then(
  () => true,
  () => false,
);

test.runIf(isExact)('a run in int8 records it, and is replayed bit for bit', async () => {
  await using folder = await temporaryDirectory();
  const dataDir = join(folder.path, 'data');
  const prompt = [5, 6, 7, 8];
  {
    await using service = await connect({ dataDir, samplerPrecision: 'int8', threads: 1 });
    const training = await service.createLoraTrainingClient({ baseModel: 'loopwright-tiny', rank: 4, seed: 1 });
    const sampler = await training.saveWeightsAndGetSamplingClient();
    const { sequences } = await sampler.sample(prompt, { maxTokens: 20, seed: 3, numSamples: 4, stop: [] });
    const differences: number[] = [];
    for (const { tokens, logprobs } of sequences) {
      const scored = await sampler.computeLogprobs([...prompt, ...tokens]);
      tokens.forEach((_, i) => {
        differences.push(Math.abs(logprobs[i]! - scored[prompt.length + i]!));
      });
    }
    expect(Math.max(...differences)).toBeGreaterThan(1e-3);
    expect(differences.reduce((a, b) => a + b, 0) / differences.length).toBeLessThan(0.5);
  }
  const { stdout, events } = await runCommand(['replay', dataDir, '--json'], { home: join(folder.path, 'home') });
  expect(events.at(-1), stdout).toMatchObject({ type: 'replay-end', same: true });
  const plans = events.flatMap((event) => (event.type === 'session-start' ? [event] : []));
  expect(JSON.stringify(plans)).toContain('"samplerPrecision":"int8"');
});

test.runIf(!isExact)('a processor that can’t is told before anything starts', async () => {
  await using folder = await temporaryDirectory();
  const start = () => connect({ dataDir: join(folder.path, 'data'), samplerPrecision: 'int8' });
  expect(await failureOf(start)).toMatchObject({ code: 'unsupported_host', details: { field: 'samplerPrecision' } });
});

test('a precision that there is not is refused', async () => {
  await using folder = await temporaryDirectory();
  const start = () => connect({ dataDir: join(folder.path, 'data'), samplerPrecision: 'int4' as 'int8' }); // not true: what is refused
  expect(await failureOf(start)).toMatchObject({
    code: 'invalid_argument',
    details: { field: 'samplerPrecision', expected: 'float32 or int8', got: '"int4"' },
  });
});
