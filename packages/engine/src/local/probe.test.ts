import { expect, test } from 'vitest';
import { probeRuntime } from './probe.js';

test('the runtime loads and multiplies here', async () => {
  const { loadMs, gflops, threads } = await probeRuntime({ size: 64, threads: 1 });
  expect(loadMs).toBeGreaterThanOrEqual(0);
  expect(gflops).toBeGreaterThan(0);
  expect(Number.isFinite(gflops)).toBe(true);
  expect(threads).toBe(1);
});
