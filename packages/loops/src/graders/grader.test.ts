import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import type { Answer, Problem } from '../environments/environment.js';
import type { Component } from './component.js';
import { createGrader } from './grader.js';

const answer: Answer<Problem> = {
  problem: { id: 'p', question: '?', answer: '4' },
  text: '4',
  stopReason: 'stop',
};
const constant = (name: string, score: ReturnType<Component['score']>, weight = 1): Component => ({
  name,
  weight,
  score: () => score,
});
const failing = (name: string, weight = 1): Component => ({
  name,
  weight,
  score: () => {
    throw new Error('the grader is broken');
  },
});
const never = (name: string, weight = 1): Component => ({
  name,
  weight,
  timeoutMs: 5,
  score: () => new Promise(() => {}),
});

describe('createGrader', () => {
  it('adds the weighted scores and keeps every component apart', async () => {
    const grade = createGrader({
      components: [constant('right', 1), constant('short', 0.5, 0.2), constant('length', Promise.resolve(123), 0)],
    });
    expect(await grade(answer)).toEqual({
      status: 'ok',
      reward: 1.1,
      components: [
        { name: 'right', weight: 1, status: 'ok', score: 1 },
        { name: 'short', weight: 0.2, status: 'ok', score: 0.5 },
        { name: 'length', weight: 0, status: 'ok', score: 123 },
      ],
    });
  });

  it('never throws: an error is a status with its cause, and no reward', async () => {
    const grade = await createGrader({ components: [constant('right', 1), failing('broken')] })(answer);
    expect(grade).toMatchObject({ status: 'grader_error', error: { message: 'the grader is broken' } });
    expect(grade).not.toHaveProperty('reward');
    expect(grade.components?.[0]).toMatchObject({ status: 'ok', score: 1 });
  });

  it('ends the wait for a component at its time limit, as a status of its own, and tells the component', async () => {
    let reason: unknown;
    const slow: Component = {
      name: 'slow',
      timeoutMs: 5,
      score: (_, { signal }) =>
        new Promise(() => signal.addEventListener('abort', () => (reason = signal.reason), { once: true })),
    };
    const grade = await createGrader({ components: [slow] })(answer);
    expect(grade).toMatchObject({ status: 'timeout', error: { code: 'grader_timeout', details: { field: 'slow' } } });
    expect(reason).toMatchObject({ code: 'grader_timeout' });
  });

  it('lets an error decide before a timeout, and a timeout before what could not be read', async () => {
    const unread = constant('unread', { status: 'unparsed', reason: 'no number' });
    const status = async (...components: Component[]) => (await createGrader({ components })(answer)).status;
    expect(await status(unread, never('late'), failing('broken'))).toBe('grader_error');
    expect(await status(unread, never('late'))).toBe('timeout');
    expect(await status(unread, constant('fine', 1))).toBe('unparsed');
  });

  it('gives an answer that could not be read the score of that component, 0 unless it says otherwise', async () => {
    const grade = (score?: number) =>
      createGrader({
        components: [constant('a', { status: 'unparsed', reason: 'r', ...(score === undefined ? {} : { score }) })],
      })(answer);
    expect(await grade()).toMatchObject({ status: 'unparsed', reward: 0, reason: 'r' });
    expect(await grade(-1)).toMatchObject({ status: 'unparsed', reward: -1 });
  });

  it('does not let a component that only measures fail an answer', async () => {
    const grade = await createGrader({ components: [constant('right', 1), failing('b', 0), never('c', 0)] })(answer);
    expect(grade).toMatchObject({ status: 'ok', reward: 1 });
    expect(grade.components?.map(({ status }) => status)).toEqual(['ok', 'grader_error', 'timeout']);
  });

  it('leaves out what does not apply, and has no reward when nothing does', async () => {
    const grade = (...components: Component[]) => createGrader({ components })(answer);
    expect(await grade(constant('a', null), constant('b', 1))).toMatchObject({ status: 'ok', reward: 1 });
    const none = await grade(constant('a', null), constant('b', { status: 'not_applicable' }));
    expect(none).toMatchObject({ status: 'grader_error', error: { code: 'invalid_argument' } });
    expect(none).not.toHaveProperty('reward');
  });

  it('takes a score that is no finite number for an error', async () => {
    for (const score of [Number.NaN, Number.POSITIVE_INFINITY])
      expect(await createGrader({ components: [constant('a', score)] })(answer)).toMatchObject({
        status: 'grader_error',
      });
  });

  it('stops when its caller does', async () => {
    const abort = new AbortController();
    const grading = createGrader({ components: [{ ...never('a'), timeoutMs: Number.POSITIVE_INFINITY }] })(answer, {
      signal: abort.signal,
    });
    abort.abort(new Error('enough'));
    expect(await grading).toMatchObject({ status: 'grader_error', error: { message: 'enough' } });
  });

  it('listens to its signal once, however many components there are', async () => {
    const { signal } = new AbortController();
    const grade = createGrader({ components: Array.from({ length: 12 }, (_, i) => constant(`c${i}`, 1)) });
    const graded = grade(answer, { signal });
    expect(getEventListeners(signal, 'abort')).toHaveLength(1); // above ten Node warns of a leak
    await graded;
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  it('refuses at construction what could only fail later', () => {
    const refused = (...components: Component[]) => expect(() => createGrader({ components })).toThrow();
    refused();
    refused(constant('a', 1), constant('a', 1));
    refused(constant('', 1));
    refused(constant('mean', 1));
    refused(constant('a', 1, Number.NaN));
    refused({ ...constant('a', 1), timeoutMs: 0 });
  });
});
