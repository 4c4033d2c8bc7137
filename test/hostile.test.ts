/** Recorded requests, changed as no client would, at every route: each is answered, none with a fault, and the server stays well. */
import { expect, test } from 'vitest';
import { campaign, requestsOfEveryRoute } from './hostile/fuzz.js';

/** The server alone takes 90 to 150 MiB; bodies of this test are small. */
const memoryBytes = 600 * 2 ** 20;

test.runIf(process.platform === 'linux')(
  'hostile requests are refused by field, expected and got; none crashes or hangs the server',
  async () => {
    const { statuses, peakBytes } = await campaign({ runs: 300, seed: 20_261_202 });
    expect(statuses.every(([status]) => status < 500)).toBe(true);
    // The attacks get behind the first checks as well: many are valid still.
    expect(statuses.find(([status]) => status === 200)?.[1]).toBeGreaterThan(30);
    expect(statuses.find(([status]) => status === 400)?.[1]).toBeGreaterThan(60);
    expect(peakBytes).toBeLessThan(memoryBytes);
  },
);

test('every route of the server is among the requests', async () => {
  const requests = await requestsOfEveryRoute();
  for (const route of [
    '/v1/usage',
    '/sampling-operations',
    '/sample-with-response-stream',
    '/api/models',
    '/resolve/',
  ]) {
    expect(requests.some(({ path }) => path.includes(route))).toBe(true);
  }
});
