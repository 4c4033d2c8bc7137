import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Problem } from '../environments/environment.js';
import type { ModelTurn } from '../episodes/environment.js';
import { createRandom } from '../random.js';
import type { Task } from './task.js';
import { withinTime } from './within-time.js';

const problem: Problem = { id: 'a', question: '1+1=', answer: '2' };
const limits = { limitMs: 30_000 };
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The task's `grade`, with its time. */
function graderOf(grade: (text: string) => Promise<{ status: 'ok'; reward: number }>) {
  const given: Task = {
    name: 'sums',
    environment: { name: 'sums', draw: () => problem, grade: ({ text }) => grade(text) },
  };
  const { environment } = withinTime(given, limits);
  if (!('grade' in environment)) throw new Error('it is of one answer');
  return (text: string) => environment.grade({ problem, text, stopReason: 'stop' });
}

describe('withinTime', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('ends a grading that never ends, and leaves no timer behind those that do', async () => {
    vi.useFakeTimers();
    const grade = graderOf((text) => (text === 'never' ? new Promise(() => {}) : wait(10).then(() => ok)));
    const ok = { status: 'ok' as const, reward: 1 };
    const late = expect(grade('never')).rejects.toMatchObject({ code: 'grader_timeout', details: { field: 'grade' } });
    await vi.advanceTimersByTimeAsync(30_000);
    await late;
    const done = grade('soon');
    await vi.advanceTimersByTimeAsync(10);
    expect(await done).toEqual(ok);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('tells of each call and of what failed', async () => {
    const seen: unknown[] = [];
    const { environment } = withinTime(
      {
        name: 'sums',
        environment: {
          name: 'sums',
          draw: () => problem,
          grade: ({ text }) => {
            if (text === 'throws') throw new TypeError('no text');
            return text === 'none' ? ({ status: 'odd' } as never) : { status: 'ok', reward: 1 };
          },
        },
      },
      {
        ...limits,
        onCall: (name, id) => seen.push(`${name} ${id}`),
        onFailure: (error) => seen.push(error instanceof Error ? error.message : error),
      },
    );
    if (!('grade' in environment)) throw new Error('it is of one answer');
    await environment.grade({ problem, text: '2', stopReason: 'stop' });
    await environment.grade({ problem, text: 'none', stopReason: 'stop' });
    await expect(environment.grade({ problem, text: 'throws', stopReason: 'stop' })).rejects.toThrow('no text');
    expect(seen).toEqual(['grade a', 'grade a', expect.stringContaining('grade.status'), 'grade a', 'no text']);
  });

  it('lets calls wait for one another', async () => {
    vi.useFakeTimers();
    let last = Promise.resolve();
    const grade = graderOf(() => {
      last = last.then(() => wait(20_000));
      return last.then(() => ({ status: 'ok' as const, reward: 1 }));
    });
    const all = Promise.all(['a', 'b', 'c', 'd'].map(grade));
    await vi.advanceTimersByTimeAsync(80_000);
    expect(await all).toHaveLength(4);
  });

  it('ends a turn of an episode that the world never answers', async () => {
    vi.useFakeTimers();
    const { environment } = withinTime(
      {
        name: 'talk',
        environment: {
          name: 'talk',
          draw: () => problem,
          begin: () => ({ messages: [], respond: () => new Promise(() => {}) }),
        },
      },
      limits,
    );
    if ('grade' in environment) throw new Error('it is of several turns');
    const episode = await environment.begin(problem, { random: createRandom(0), signal: new AbortController().signal });
    const turn = { index: 0, text: '2' } as ModelTurn; // true: nothing else of it is read
    const late = expect(episode.respond(turn)).rejects.toMatchObject({ details: { field: 'respond' } });
    await vi.advanceTimersByTimeAsync(30_000);
    await late;
  });
});
