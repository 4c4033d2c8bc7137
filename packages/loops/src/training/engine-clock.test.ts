import { describe, expect, it } from 'vitest';
import type { Grade } from '../environments/environment.js';
import { Bandit, copyEnvironment } from '../testing/bandit.js';
import { EngineClock } from './engine-clock.js';
import { runGrpo } from './grpo.js';

/** A call that ends when it is told to. */
function call(): { readonly end: () => void; readonly made: () => Promise<void> } {
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { end, made: () => ended };
}

describe('the clock of the engine', () => {
  it('counts time with several calls under way once, and none without', async () => {
    let now = 0;
    const clock = new EngineClock(() => now);
    const [a, b] = [call(), call()];
    now = 10;
    const first = clock.watch(a.made);
    now = 15;
    const second = clock.watch(b.made);
    now = 20;
    a.end();
    await first;
    now = 30;
    b.end();
    await second;
    now = 40;
    expect(clock.read()).toEqual({ busyMs: 20, wallMs: 40 });
  });

  it('begins a window in the middle of a call', async () => {
    let now = 0;
    const clock = new EngineClock(() => now);
    const { end, made } = call();
    const watched = clock.watch(made);
    now = 10;
    clock.restart();
    now = 15;
    expect(clock.read()).toEqual({ busyMs: 5, wallMs: 5 });
    end();
    await watched;
    now = 20;
    expect(clock.read()).toEqual({ busyMs: 5, wallMs: 10 });
  });

  it('counts a call that fails to its end', async () => {
    let now = 0;
    const clock = new EngineClock(() => now);
    await clock.watch(async () => Promise.reject(new Error('no'))).catch(() => (now = 7));
    now = 10;
    expect(clock.read()).toEqual({ busyMs: 0, wallMs: 10 });
  });
});

describe('a step', () => {
  it('tells how much of it the engine was asked for something: not while a grader thinks', async () => {
    let now = 0;
    let graded = 0;
    const wait = (ms: number): void => {
      now += ms;
    };
    const training = new Bandit({ onCall: () => wait(1) });
    const grade = (): Grade => {
      wait(2);
      return { status: 'ok', reward: graded++ % 2 };
    };
    const environment = { ...copyEnvironment, grade };
    const options = { groupsPerStep: 1, samplesPerGroup: 8, maxTokens: 1, steps: 1, seed: 1 };
    const { metrics } = await runGrpo({ ...options, training, environment, now: () => now });
    // 1 ms each for sampling, forwardBackward, optimStep and the new sampler; 2 ms for each of 8 grades.
    expect(metrics).toMatchObject([{ 'time/step_ms': 20, 'time/grade_ms': 16, 'engine/busy_share': 0.2 }]);
  });
});
