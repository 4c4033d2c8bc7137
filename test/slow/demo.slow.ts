/** The whole demo: minutes, so not among the tests of every change (`npm run test:all`). */
import { temporaryDirectory } from '@loopwright/testkit';
import { expect, test } from 'vitest';
import { runCommand } from '../support/command.js';

test('the demo takes the bundled model above 90 % of held-out problems', { timeout: 900_000 }, async () => {
  await using home = await temporaryDirectory();
  const { code, events } = await runCommand(['demo', '--json'], { home: home.path });
  expect(code).toBe(0);
  const [before, after] = events.filter(({ type }) => type === 'evaluation');
  expect(before!.accuracy).toBeGreaterThan(0.35);
  expect(before!.accuracy).toBeLessThan(0.65);
  expect(after!.accuracy).toBeGreaterThan(0.9);
});
