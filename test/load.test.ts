/** The load command in small: `npm run load` is the whole of it. */
import { expect, test } from 'vitest';
import { bursts } from './load/bursts.js';
import { measuredServer } from './load/measured-server.js';
import { soak } from './load/soak.js';

test.runIf(process.platform === 'linux')(
  'bursts of samples, bodies and sessions: nothing is lost or doubled',
  async () => {
    await using server = await measuredServer(['--max-sessions', '64']);
    const done = await bursts(server, 0.04);
    expect(done.map(({ operations }) => operations)).toEqual([20, 3, 8, 2, 400]);
    expect((await soak(server, 0.05)).operations).toBeGreaterThan(0);
    expect(server.isUp()).toBe(true);
    expect(server.log()).toBe(''); // nothing at warning or above
  },
);
