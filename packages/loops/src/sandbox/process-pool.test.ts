import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { complaint } from '@loopwright/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rejection } from '../testing/rejection.js';
import { SandboxChild } from './child-process.js';
import { Execution } from './execution.js';
import type { RunTask } from './messages.js';
import { ProcessPool } from './process-pool.js';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'loopwright-pool-'));
  // A child that is ready, begins what it is given, and then does as the task says.
  const child = `const fs = require('node:fs');
const say = (message) => fs.writeSync(4, JSON.stringify(message) + '\\n');
say({ type: 'ready' });
const chunk = Buffer.alloc(65536);
const task = JSON.parse(chunk.toString('utf8', 0, fs.readSync(3, chunk)));
if (task.code !== 'die at once') say({ type: 'started' });
if (task.code === 'end') say({ type: 'done', status: 'ok' });
if (task.code === 'malformed') fs.writeSync(4, 'no json\\n');
if (task.code === 'long line') fs.writeSync(4, 'x'.repeat(3000));
if (task.code === 'crash') process.exit(7);
if (task.code === 'die at once') process.exit(7);
if (task.code === 'write a file') { try { fs.writeFileSync(__filename + '.txt', 'x'); } catch (error) { say({ type: 'done', status: error.code }); } }
for (;;);`;
  await writeFile(path.join(folder, 'child.cjs'), child);
});
afterAll(async () => await rm(folder, { recursive: true, force: true }));

const start = (script = 'child.cjs') =>
  new SandboxChild({
    script: path.join(folder, script),
    args: [],
    readable: [path.join(folder, '*')],
    nodeFlags: [],
    cpuSeconds: 60,
    lineBytes: 1000,
    outputBytes: 1000,
  });
const task = (code: string): RunTask => ({ type: 'run', code, stdin: '', files: {}, outputBytes: 1000, calls: [] });
const closed = complaint({ code: 'disposed', field: 'pool', expected: 'an open one', got: 'a closed one' });

test('children are for one task each, in the order of asking, also where one wants several', async () => {
  const pool = new ProcessPool({ size: 2, startMs: 60_000, start: () => start() });
  const order: string[] = [];
  const [first] = await pool.take(1);
  const pair = pool.take(2).then((children) => {
    order.push('pair');
    return children;
  });
  const single = pool.take(1).then((children) => {
    order.push('single');
    return children;
  });
  pool.end(first!);
  const children = await pair;
  expect(new Set([first!.pid, ...children.map(({ pid }) => pid)]).size).toBe(3);
  for (const child of children) pool.end(child);
  await single;
  expect(order).toEqual(['pair', 'single']);
  await pool.close(closed);
  expect(await rejection(pool.take(1))).toMatchObject({ code: 'disposed' });
});

test('processes that end while they start are told to who waits, and who asks later tries again', async () => {
  let started = 0;
  const pool = new ProcessPool({
    size: 1,
    startMs: 60_000,
    start: () => start(++started <= 3 ? 'missing.cjs' : 'child.cjs'),
  });
  const error = await rejection(pool.take(1));
  expect(error).toMatchObject({ code: 'sandbox_failed' });
  expect(String(error.cause)).toMatch(/missing\.cjs/);
  expect(started).toBe(3);
  expect(await pool.take(1)).toHaveLength(1);
  await pool.close(closed);
});

test('a child that does not come up in time is replaced', async () => {
  await writeFile(path.join(folder, 'mute.cjs'), 'setInterval(() => {}, 1000);');
  let started = 0;
  const pool = new ProcessPool({
    size: 1,
    startMs: 4000,
    start: () => start(++started === 1 ? 'mute.cjs' : 'child.cjs'),
  });
  expect(await pool.take(1)).toHaveLength(1);
  expect(started).toBe(2);
  await pool.close(closed);
});

test('how a child ends is told apart: its answer, its crash, its flood, its deadline, a kill from outside', async () => {
  const pool = new ProcessPool({ size: 2, startMs: 60_000, start: () => start() });
  const endingOf = async (code: string, onTaken: (child: SandboxChild) => void = () => {}) => {
    const [child] = await pool.take(1);
    const execution = new Execution({
      child: child!,
      task: task(code),
      timeoutMs: 500,
      residentBytes: 2 ** 30,
      signal: undefined,
    });
    onTaken(child!);
    return await execution.ending;
  };
  expect(await endingOf('end')).toEqual({ type: 'answered', message: { type: 'done', status: 'ok' } });
  expect(await endingOf('crash')).toEqual({ type: 'ended', end: { type: 'exit', code: 7, signal: null } });
  expect(await endingOf('malformed')).toEqual({ type: 'ended', end: { type: 'malformed' } });
  expect(await endingOf('long line')).toEqual({ type: 'ended', end: { type: 'flooded' } });
  expect(await endingOf('loop')).toEqual({ type: 'timeout' });
  // The permission model of the process stands behind everything else.
  expect(await endingOf('write a file')).toMatchObject({ message: { status: 'ERR_ACCESS_DENIED' } });
  for (const [code, kill] of [
    ['die at once', () => {}],
    ['loop', (child: SandboxChild) => process.kill(child.pid!, 'SIGKILL')],
  ] as const) {
    expect(await rejection(endingOf(code, kill))).toMatchObject({
      code: 'sandbox_failed',
      details: { field: 'sandbox' },
    });
  }
  await pool.close(closed);
});
