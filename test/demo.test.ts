/** The demo, on the bundled model: what it tells, and that Ctrl-C in the middle of it loses nothing. */
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@loopwright/testkit';
import { readCheckpoints, readRun } from 'loopwright';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCommand, startCommand } from './support/command.js';

let home: TemporaryDirectory;

beforeEach(async () => {
  home = await temporaryDirectory();
});

afterEach(() => home[Symbol.asyncDispose]());

/** Judged by fewer problems, for tests that end soon. */
const few = ['--held-out', '20'];

/** Those of an event of a type. */
function ofType(events: readonly Record<string, unknown>[], type: string): Record<string, unknown>[] {
  return events.filter((event) => event.type === type);
}

test('it tells accuracy before and after with n and interval, every step, seconds and the adapter on disk', async () => {
  const { code, events, stderr } = await runCommand(['demo', '--steps', '2', ...few, '--json'], { home: home.path });
  expect(stderr).toBe('');
  expect(code).toBe(0);
  expect(ofType(events, 'evaluation')).toMatchObject([
    { when: 'before', n: 20, interval: { low: expect.any(Number), high: expect.any(Number) } },
    { when: 'after', n: 20 },
  ]);
  expect(ofType(events, 'step-end').map(({ step }) => step)).toEqual([1, 2]);
  const [result] = ofType(events, 'result') as [{ adapter: { directory: string }; seconds: Record<string, number> }];
  await access(join(result.adapter.directory, 'adapter_model.safetensors'));
  expect(result.seconds.total).toBeGreaterThan(0);
});

test('piped, it writes plain lines: completions as they are, one line a step', async () => {
  const { stdout } = await runCommand(['demo', '--steps', '1', ...few], { home: home.path });
  expect(stdout).toMatch(/Held-out problems, before training: \d+\.\d % right \(\d+ of n = 20, 95 % interval /);
  expect(stdout).toMatch(/What it writes before:\n( {2}\d+[+-]\d+=.* {2}(right|wrong: \d+)\n){6}/);
  expect(stdout).toMatch(/\nstep 1\/1 {2}reward \d\.\d{3} /);
  expect(stdout).toMatch(/\n {2}after +\d+\.\d % right/);
  expect([...stdout].filter((char) => char < ' ' && char !== '\n')).toEqual([]);
});

test('Ctrl-C in a step saves what was learnt, says how to go on, and ends with 130', async () => {
  const demo = startCommand(['demo', ...few, '--json'], { home: home.path });
  await demo.output(/"step":1,/);
  demo.interrupt();
  const { code, events, stderr } = await demo.end;
  expect(code).toBe(130);
  expect(stderr).toContain('Ctrl-C again ends at once');
  expect(stderr).toMatch(/\nInterrupted: checkpoint after step \d+; go on with: .* demo .*--resume .*demo\n$/);
  const [{ run }] = ofType(events, 'interrupted') as [{ run: string }];
  const { step = 0 } = (await readCheckpoints(run)).checkpoints[0] ?? {};
  expect(step).toBeGreaterThan(0);

  const steps = String(step + 1);
  const resumed = await runCommand(['demo', ...few, '--steps', steps, '--resume', run, '--json'], { home: home.path });
  expect(resumed.code).toBe(0);
  expect(resumed.stderr).toContain(`demo goes on after step ${step}`);
  expect(ofType(resumed.events, 'step-end').map((event) => event.step)).toEqual([step + 1]);
  expect(ofType(resumed.events, 'result')).toMatchObject([{ run }]);
  const lines = (await readRun(run)).steps.flatMap((each) => (each.type === 'step-end' ? [each.step] : []));
  expect(lines).toEqual(Array.from({ length: step + 1 }, (_, i) => i + 1));

  const other = await runCommand(['demo', ...few, '--seed', '2', '--resume', run], { home: home.path });
  expect(other.code).toBe(1);
  expect(other.stderr).toContain('seeds.seed (1 then, 2 now)');
  const both = await runCommand(['demo', '--resume', join(home.path, 'nothing')], { home: home.path });
  expect(both.code).toBe(1);
  expect(both.stderr).toContain('nothing');
});

test('a second Ctrl-C ends at once', async () => {
  const demo = startCommand(['demo', ...few, '--json'], { home: home.path });
  await demo.output(/"step":1,/);
  demo.interrupt();
  await demo.output(/Ctrl-C again ends at once/);
  demo.interrupt();
  const { code, events } = await demo.end;
  expect(code).toBe(130);
  expect(ofType(events, 'result')).toEqual([]);
});
