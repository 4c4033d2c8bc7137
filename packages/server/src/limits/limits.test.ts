/** The limits of requests by themselves: shape of JSON, room for bodies, how many at once. */
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../testing/manual-clock.js';
import { Admission } from './admission.js';
import { BodyRoom } from './body-room.js';
import { checkJsonShape } from './json-shape.js';
import { completeLimits } from './limits.js';

describe('the shape of JSON', () => {
  const check = (text: string) => () => checkJsonShape(Buffer.from(text), { jsonDepth: 3, jsonParts: 7 });

  it.each([
    '[[[1,2,3]]]',
    '{"a":{"b":[1]}}',
    `[${'1,'.repeat(1000)}1]`,
    '"[[[[[[{{{{{"',
    '["\\"[[[[[", "\\\\"]',
    '}}}]]]',
  ])('lets %s pass', (text) => {
    expect(check(text)).not.toThrow();
  });

  it.each([
    ['[[[[1]]]]', 'nested 3 deep'],
    ['['.repeat(100_000), 'nested 3 deep'],
    ['{"a":{"a":{"a":{', 'nested 3 deep'],
    ['[[],[],[],[],[],[],[]]', 'at most 7 objects'],
    ['["a","b","c","d","e","f","g"]', 'at most 7 objects'],
    ['["\\\\",["\\"",[[', 'nested 3 deep'],
  ])('refuses %.20s', (text, expected) => {
    expect(check(text)).toThrow(expected);
  });
});

describe('room for bodies', () => {
  it('is given in the order of asking, and no small one overtakes', async () => {
    const room = new BodyRoom({ bytes: 10, waitMs: 1000, clock: new ManualClock() });
    const first = await room.take(8);
    const order: string[] = [];
    const big = room.take(9).then((share) => {
      order.push('big');
      return share;
    });
    const small = room.take(1).then(() => order.push('small'));
    first.release();
    first.release();
    (await big).shrink(3);
    await small;
    expect(order).toEqual(['big', 'small']);
    expect(room.freeBytes).toBe(6);
  });

  it('that does not come in time is refused with advice to try again, and lets those behind go', async () => {
    const clock = new ManualClock();
    const room = new BodyRoom({ bytes: 10, waitMs: 1000, clock });
    await room.take(8);
    const big = room.take(9);
    const refused = expect(big).rejects.toMatchObject({ code: 'limit_exceeded', retryable: true });
    clock.advance(999);
    const small = room.take(2);
    clock.advance(1);
    await refused;
    await small;
    expect(room.freeBytes).toBe(0);
  });

  it('is not kept for one who went away', async () => {
    const room = new BodyRoom({ bytes: 10, waitMs: 1000, clock: new ManualClock() });
    const held = await room.take(10);
    const gone = new AbortController();
    const waiting = room.take(5, gone.signal);
    gone.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'limit_exceeded' });
    held.release();
    expect(room.freeBytes).toBe(10);
  });

  it('is whole for a body that is larger than all of it', async () => {
    const room = new BodyRoom({ bytes: 10, waitMs: 1000, clock: new ManualClock() });
    (await room.take(1000)).release();
    expect(room.freeBytes).toBe(10);
  });
});

describe('admission', () => {
  it('lets so many in at once, and none once it is closed', async () => {
    const admission = new Admission({ limits: completeLimits({ requests: 2 }), clock: new ManualClock() });
    const leave = admission.enter();
    admission.enter();
    expect(() => admission.enter()).toThrow(expect.objectContaining({ code: 'limit_exceeded' }));
    leave();
    leave();
    const last = admission.enter();
    admission.close();
    expect(() => admission.enter()).toThrow(expect.objectContaining({ code: 'shutting_down' }));
    last();
  });

  it('is empty when the last one left, or when the time is over', async () => {
    const clock = new ManualClock();
    const admission = new Admission({ limits: completeLimits(), clock });
    await admission.emptied(1000);
    const leave = admission.enter();
    const patient = admission.emptied(1000);
    leave();
    await patient;
    admission.enter();
    const impatient = admission.emptied(1000);
    clock.advance(1000);
    await impatient;
  });

  it('keeps bodies that nobody vouches for out of the room of the others', async () => {
    const limits = completeLimits({ bodyMemoryBytes: 20, unprovenMemoryBytes: 10 });
    const admission = new Admission({ limits, clock: new ManualClock() });
    const { signal } = new AbortController();
    await admission.room('unproven', 10, signal);
    (await admission.room('proven', 10, signal)).release();
  });
});
