import { rejection } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { type SamplingWork, SliceLoop, type Slices } from './slices.js';

const noSampling: SamplingWork = { idle: true, runSlice: async () => undefined, failAll: () => undefined };

async function* steps(count: number, log: string[], name: string): Slices<string> {
  for (let i = 1; i <= count; i++) {
    log.push(`${name}${i}`);
    if (i < count) yield i / count;
  }
  return name;
}

/** Sampling work of a number of slices, each as long as it takes to count. */
function samplingWork(count: number, log: string[]): SamplingWork & { readonly errors: unknown[] } {
  let left = count;
  const errors: unknown[] = [];
  return {
    errors,
    get idle() {
      return left === 0;
    },
    runSlice: async () => {
      log.push('s');
      left--;
    },
    failAll: (error) => {
      errors.push(error);
      left = 0;
    },
  };
}

describe('the slice loop', () => {
  it('gives tasks their turns one slice each, and says how far each is', async () => {
    const log: string[] = [];
    const loop = new SliceLoop(noSampling);
    const shares: number[] = [];
    const a = loop.submit(steps(3, log, 'a'), { onProgress: (done) => shares.push(done) });
    const b = loop.submit(steps(2, log, 'b'));
    expect(await Promise.all([a, b])).toEqual(['a', 'b']);
    expect(log).toEqual(['a1', 'b1', 'a2', 'b2', 'a3']);
    expect(shares).toEqual([1 / 3, 2 / 3]);
  });

  it('lets sampling in between the slices of a long task', async () => {
    const log: string[] = [];
    const types: string[] = [];
    const loop = new SliceLoop(samplingWork(5, log), ({ type, startMs, endMs }) => {
      expect(endMs).toBeGreaterThanOrEqual(startMs);
      types.push(type);
    });
    await loop.submit(steps(20, log, 'a'));
    expect(log.indexOf('s')).toBeLessThan(log.indexOf('a20'));
    expect(log.filter((entry) => entry === 's').length).toBeGreaterThan(0);
    expect(types.slice(0, 20)).toContain('sampling');
  });

  it('stops a cancelled task at its next turn, and one that must not stop only before it starts', async () => {
    const log: string[] = [];
    const loop = new SliceLoop(noSampling);
    const controller = new AbortController();
    const { signal } = controller;
    const abort = (done: number) => {
      if (done === 0.5) controller.abort(new Error('enough'));
    };
    const stopped = rejection(loop.submit(steps(4, log, 'a'), { signal, onProgress: abort }));
    const whole = loop.submit(steps(4, log, 'b'), { signal, cancellable: false });
    expect(await stopped).toMatchObject({ message: 'enough' });
    expect(await whole).toBe('b');
    expect(log.filter((entry) => entry.startsWith('a'))).toEqual(['a1', 'a2']);
    expect(log.filter((entry) => entry.startsWith('b'))).toHaveLength(4);
    const late = loop.submit(steps(1, log, 'c'), { signal, cancellable: false });
    expect(await rejection(late)).toMatchObject({ message: 'enough' });
    expect(log).not.toContain('c1');
  });

  it('runs the clean-up of a task that it stops', async () => {
    let cleaned = false;
    async function* work(): Slices<void> {
      try {
        yield 0.5;
        yield 0.9;
      } finally {
        cleaned = true;
      }
    }
    const controller = new AbortController();
    const loop = new SliceLoop(noSampling);
    const done = loop.submit(work(), { signal: controller.signal, onProgress: () => controller.abort(new Error('x')) });
    expect(await rejection(done)).toMatchObject({ message: 'x' });
    expect(cleaned).toBe(true);
  });

  it('tells a caller whose progress callback throws, and ends work that must not stop half way all the same', async () => {
    const log: string[] = [];
    const loop = new SliceLoop(noSampling);
    const onProgress = () => {
      throw new Error('callback');
    };
    const whole = loop.submit(steps(3, log, 'b'), { cancellable: false, onProgress });
    expect(await rejection(whole)).toMatchObject({ message: 'callback' });
    await loop.submit(steps(4, log, 'c'));
    expect(log).toContain('b3');
  });

  it('fails what was asked for when sampling itself breaks, and goes on', async () => {
    const log: string[] = [];
    const work = samplingWork(3, log);
    const loop = new SliceLoop({
      ...work,
      get idle() {
        return work.idle;
      },
      runSlice: () => Promise.reject(new Error('broken')),
    });
    loop.wake();
    expect(await loop.submit(steps(5, log, 'a'))).toBe('a');
    expect(work.errors).toMatchObject([{ message: 'broken' }]);
  });

  it('fails everything when it is closed, after the slice that is running', async () => {
    const log: string[] = [];
    const work = samplingWork(1000, log);
    const loop = new SliceLoop(work);
    let inside = false;
    async function* slow(): Slices<void> {
      for (;;) {
        inside = true;
        await new Promise((resolve) => setImmediate(resolve));
        inside = false;
        yield 0;
      }
    }
    const running = rejection(loop.submit(slow()));
    const waiting = rejection(loop.submit(steps(3, log, 'a')));
    await new Promise((resolve) => setImmediate(resolve));
    await loop.close(new Error('closed'));
    expect(inside).toBe(false);
    expect(await running).toMatchObject({ message: 'closed' });
    expect(await waiting).toMatchObject({ message: 'closed' });
    expect(await rejection(loop.submit(steps(1, log, 'b')))).toMatchObject({ message: 'closed' });
    expect(work.idle).toBe(true);
  });
});
