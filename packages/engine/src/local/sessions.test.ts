import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { SessionSpec, TrainingSpec } from '@loopwright/protocol';
import { rejection } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import type { SwapEvent } from '../swap.js';
import { executionPlan } from './plan.js';
import { type After, Sessions } from './sessions.js';
import { removeSwapLeftovers } from './swapped-session.js';
import { tinyBase } from './testing/tiny-base.js';
import { adam, crossEntropy, datum, type TestEngine, tinyEngine } from './testing/tiny-engine.js';

const lora: TrainingSpec = { type: 'lora', rank: 4, alpha: 8, targetModules: ['q_proj', 'v_proj'] };
const spec = (name: string, training: TrainingSpec = lora): SessionSpec => {
  return { name, baseModel: 'llama-tied', training, seed: 1 };
};
const forwardBackward = (seed: number) =>
  ({ type: 'forward-backward', data: [datum(20, seed), datum(11, seed + 50)], loss: crossEntropy }) as const;

/** A timer that goes off when the test says so. */
class ManualTimer {
  readonly #actions = new Set<() => void>();

  readonly after: After = (_, action) => {
    this.#actions.add(action);
    return () => this.#actions.delete(action);
  };

  get waiting(): number {
    return this.#actions.size;
  }

  /** The time without work has passed for all that wait now. */
  expire(): void {
    for (const action of [...this.#actions]) {
      this.#actions.delete(action);
      action();
    }
  }
}

interface Swapping extends TestEngine {
  readonly timer: ManualTimer;
  readonly events: SwapEvent[];
  /** Lets the idle time of all idle sessions pass, and waits until one more thing was told. */
  swap(): Promise<SwapEvent>;
}

async function swapping(swapDirectory?: string): Promise<Swapping> {
  const timer = new ManualTimer();
  const events: SwapEvent[] = [];
  let told = (_: SwapEvent) => {};
  const test = await tinyEngine('llama-tied', {
    after: timer.after,
    onSwap: (event) => {
      events.push(event);
      told(event);
    },
    ...(swapDirectory === undefined ? {} : { swapDirectory }),
  });
  const swap = () => {
    const next = new Promise<SwapEvent>((resolve) => {
      told = resolve;
    });
    timer.expire();
    return next;
  };
  return { ...test, timer, events, swap };
}

describe('a session without work for a time', () => {
  it.each([['an adapter', lora] as const, ['every weight', { type: 'full' }] as const])(
    'that trains %s goes to the disk, and on from there bit for bit, its pending gradient included',
    async (_, training) => {
      await using test = await swapping();
      await using undisturbed = await tinyEngine('llama-tied', { swapAfterMs: null });
      const { engine } = test;
      for (const each of [engine, undisturbed.engine]) {
        await each.createSession(spec('s', training));
        await each.pass('s', forwardBackward(1));
        await each.optimStep('s', adam);
        await each.pass('s', forwardBackward(2));
      }
      expect(await test.swap()).toMatchObject({ type: 'swap-out', session: 's' });
      const pass = await engine.pass('s', forwardBackward(3));
      expect(test.events.map(({ type }) => type)).toEqual(['swap-out', 'swap-in']);
      expect(pass).toEqual(await undisturbed.engine.pass('s', forwardBackward(3)));
      await test.swap();
      const step = await engine.optimStep('s', adam);
      expect(step).toEqual(await undisturbed.engine.optimStep('s', adam));
    },
  );

  it('leaves no file with a name behind, whether it waits, comes back or is closed', async () => {
    await using folders = await tinyEngine('llama-tied');
    const directory = folders.folder();
    await using test = await swapping(directory);
    for (const name of ['a', 'b']) {
      await test.engine.createSession(spec(name));
      await test.swap();
      expect(await readdir(directory)).toEqual([]);
    }
    await test.engine.clearGradient('a');
    await test.engine.closeSession('b');
    expect(await readdir(directory)).toEqual([]);
    expect(await rejection(test.engine.pass('b', forwardBackward(1)))).toMatchObject({ code: 'unknown_session' });
    await test.engine.createSession(spec('b'));
    expect((await test.engine.optimStep('b', adam)).step).toBe(1);
  });

  it('is held by nothing in memory', async () => {
    await using model = await tinyBase('llama-tied');
    await using folders = await tinyEngine('llama-tied');
    const timer = new ManualTimer();
    let told = () => {};
    const isOut = new Promise<void>((resolve) => {
      told = resolve;
    });
    await using sessions = new Sessions(model.base, {
      directory: folders.folder(),
      swapAfterMs: 1,
      after: timer.after,
      onSwap: () => told(),
    });
    sessions.create(spec('s'), executionPlan(model.base.config, { threads: 1 }, lora));
    let held: WeakRef<object> | undefined;
    await sessions.use('s', async (session) => {
      held = new WeakRef(session);
    });
    timer.expire();
    await isOut;
    timer.expire();
    expect(held?.deref()).toBeUndefined();
  });

  it('is read back once for calls that meet', async () => {
    await using test = await swapping();
    const { engine } = test;
    await engine.createSession(spec('s'));
    await engine.pass('s', forwardBackward(1));
    await test.swap();
    const folders = [test.folder(), test.folder()];
    const [pass] = await Promise.all([
      engine.pass('s', { ...forwardBackward(2), type: 'forward' }),
      ...folders.map((directory, i) => engine.saveState('s', { version: `v${i}`, directory })),
    ]);
    expect(pass.outputs).toHaveLength(2);
    expect(test.events.map(({ type }) => type)).toEqual(['swap-out', 'swap-in']);
  });

  it('stays where a call comes while it is written, and goes later', async () => {
    await using test = await swapping();
    const { engine } = test;
    await engine.createSession(spec('s'));
    await engine.pass('s', forwardBackward(1));
    test.timer.expire();
    expect((await engine.optimStep('s', adam)).step).toBe(1);
    expect(test.events).toEqual([]);
    expect(test.timer.waiting).toBe(1);
    expect(await test.swap()).toMatchObject({ type: 'swap-out' });
    expect((await engine.optimStep('s', adam)).step).toBe(2);
  });

  it('is not put away while a call works with it', async () => {
    await using test = await swapping();
    const { engine } = test;
    await engine.createSession(spec('s'));
    const passing = engine.pass('s', forwardBackward(1));
    expect(test.timer.waiting).toBe(0);
    await passing;
    expect(test.timer.waiting).toBe(1);
  });

  it('can be closed while it is written or read', async () => {
    await using test = await swapping();
    const { engine } = test;
    await engine.createSession(spec('s'));
    test.timer.expire();
    await engine.closeSession('s');
    await engine.createSession(spec('s'));
    await test.swap();
    const passing = engine.pass('s', forwardBackward(1));
    await engine.closeSession('s');
    expect((await passing).outputs).toHaveLength(2);
    expect(await rejection(engine.pass('s', forwardBackward(1)))).toMatchObject({ code: 'unknown_session' });
  });

  it('stays in memory where it cannot be written, which is told once', async () => {
    await using folders = await tinyEngine('llama-tied');
    const directory = folders.folder();
    await mkdir(path.dirname(directory), { recursive: true });
    await writeFile(directory, 'a file where the folder would be');
    await using test = await swapping(directory);
    const { engine } = test;
    for (const name of ['a', 'b']) await engine.createSession(spec(name));
    expect(await test.swap()).toMatchObject({ type: 'swap-failed', error: { code: expect.any(String) } });
    expect((await engine.optimStep('a', adam)).step).toBe(1);
    expect((await engine.optimStep('b', adam)).step).toBe(1);
    expect(test.events).toHaveLength(1);
  });

  it('of an engine that is closed frees its file', async () => {
    const test = await swapping();
    await test.engine.createSession(spec('s'));
    await test.swap();
    await test.engine.createSession(spec('t'));
    test.timer.expire();
    await test.engine[Symbol.asyncDispose]();
    expect(test.events.map(({ type }) => type)).toEqual(['swap-out']);
    await test[Symbol.asyncDispose]();
  });
});

describe('leftovers of killed engines', () => {
  it('are removed when they are old, and left alone while another engine may be writing them', async () => {
    await using test = await tinyEngine('llama-tied');
    const directory = test.folder();
    for (const name of ['old', 'young']) {
      await mkdir(path.join(directory, name), { recursive: true });
      await writeFile(path.join(directory, name, 'session.safetensors'), 'x');
    }
    const hoursAgo = new Date(Date.now() - 2 * 60 * 60 * 1000);
    await utimes(path.join(directory, 'old'), hoursAgo, hoursAgo);
    await removeSwapLeftovers(directory);
    expect(await readdir(directory)).toEqual(['young']);
    await removeSwapLeftovers(path.join(directory, 'none'));
  });
});
