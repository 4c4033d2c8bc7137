/** Loops that are cut off and gone on with: as if nothing had happened. */
import { describe, expect, it } from 'vitest';
import type { JsonValue } from '../data/row.js';
import { sftDatum } from '../datums/sft-datum.js';
import type { Environment } from '../environments/environment.js';
import { type Alarm, alarmText } from '../guard/alarm.js';
import { createRandom } from '../random.js';
import { Bandit, characterTokenizer, copyEnvironment, copyProblem } from '../testing/bandit.js';
import { MemoryCheckpoints } from '../testing/memory-checkpoints.js';
import { rejection } from '../testing/rejection.js';
import type { Checkpoints, LoopPosition } from './checkpoints.js';
import { runGrpo } from './grpo.js';
import type { GrpoOptions } from './grpo-options.js';
import { resumableSteps } from './resumable-steps.js';
import { runSft } from './sft.js';

/** A bandit and the options to run it with. */
interface Part {
  readonly training: Bandit;
  readonly checkpoints?: Checkpoints;
  readonly signal?: AbortSignal;
}
type Note = (step: number, line: unknown) => void;
interface Loop {
  readonly run: (part: Part, note: Note, more?: { readonly steps?: number }) => Promise<{ readonly notices: string[] }>;
  /** A call between two steps, or before the training of one. */
  readonly between: string;
}

const problems = [0, 1, 2, 3, 5].map(copyProblem);
const noClock = { now: () => 0 };

const grpo = (options: Partial<GrpoOptions<ReturnType<typeof copyProblem>>>): Loop => ({
  between: 'sample',
  run: async (part, note, { steps = 7 } = {}) => {
    const notices: string[] = [];
    await runGrpo({
      ...{
        environment: copyEnvironment,
        steps,
        groupsPerStep: 3,
        samplesPerGroup: 8,
        maxTokens: 1,
        seed: 4,
        ...noClock,
      },
      ...options,
      ...part,
      guard: { onAlarm: () => {} },
      onNotice: ({ message }) => void notices.push(message),
      onStep: ({ step, type, metrics, groups, alarms }) =>
        note(step, {
          type,
          metrics,
          alarms,
          problems: groups.map(({ problemIndex, policyStep, problem }) => [problemIndex, policyStep, problem.id]),
        }),
    });
    return { notices };
  },
});

const tokenizer = characterTokenizer();
const data = [0, 1, 2, 3, 4, 5, 6].map((digit) =>
  sftDatum({ prompt: tokenizer.encode(`${digit}`), completion: tokenizer.encode(String(9 - digit)) }),
);
const sftOver = (rows: typeof data): Loop => ({
  between: 'forward-backward',
  run: async (part, note, { steps = 8 } = {}) => {
    const notices: string[] = [];
    await runSft({
      ...{ data: rows, heldOut: data.slice(0, 2), epochs: steps / 4, batchSize: 2, seed: 3, ...noClock, ...part },
      guard: { onAlarm: () => {} },
      onNotice: ({ message }) => void notices.push(message),
      onStep: ({ step, metrics, alarms }) => note(step, { metrics, alarms }),
    });
    return { notices };
  },
});
const sft = sftOver(data);

const loops: [string, Loop][] = [
  ['GRPO that draws', grpo({})],
  ['GRPO over epochs, with refills and parts', grpo({ problems, refillRounds: 2, groupsPerPass: 1 })],
  ['SFT', sft],
];

async function undisturbed(loop: Loop): Promise<{ readonly lines: Map<number, unknown>; readonly training: Bandit }> {
  const training = new Bandit();
  const lines = new Map<number, unknown>();
  await loop.run({ training }, (step, line) => lines.set(step, line));
  return { lines, training };
}

describe.each(loops)('%s', (_name, loop) => {
  it.each([1, 2, 3])(
    'that dies in the middle of step after step, saved every %d, ends as if undisturbed',
    async (every) => {
      const calm = await undisturbed(loop);
      const memory = new MemoryCheckpoints();
      const lines = new Map<number, unknown>();
      let last: Bandit | undefined;
      for (let life = 1; last === undefined; life++) {
        // Each life dies at the first pass after one step more than the checkpoints lie apart, so that there is always some progress.
        let passes = 0;
        const onCall = (name: string): void => {
          if (name === 'optim-step' && passes++ > every) throw new Error('killed');
        };
        const part = memory.open({ every, onCall });
        const done = await loop.run(part, (step, line) => lines.set(step, line)).catch((error: Error) => error.message);
        expect(life).toBeLessThan(20);
        if (done !== 'killed') {
          expect(done).toHaveProperty('notices');
          last = part.training;
        }
      }
      expect(Object.fromEntries(lines)).toEqual(Object.fromEntries(calm.lines));
      expect(last.weights).toEqual(calm.training.weights);
    },
  );

  it.each(['between', 'optim-step'] as const)(
    'aborted at a call (%s), it saves at the end of a step, and goes on from there',
    async (at) => {
      const calm = await undisturbed(loop);
      const name = at === 'between' ? loop.between : at;
      const memory = new MemoryCheckpoints();
      const controller = new AbortController();
      let count = 0;
      const onCall = (call: string): void => {
        if (call === name && ++count === (name === 'sample' ? 8 : 3)) controller.abort(new Error('Ctrl-C'));
      };
      const lines = new Map<number, unknown>();
      const note: Note = (step, line) => lines.set(step, line);
      const error = await rejection(
        loop.run({ ...memory.open({ every: 100, onCall }), signal: controller.signal }, note),
      );
      const saved = memory.saved!.position.step;
      expect(error).toMatchObject({
        code: 'cancelled',
        message: expect.stringContaining(`goes on after step ${saved}`),
      });
      // A step whose training has begun goes on to its end; before that, the step before was the last.
      expect(saved).toBe(lines.size);
      if (name !== 'sample') expect(saved).toBe(3);
      expect(saved).toBeGreaterThan(0);
      const rest = memory.open({ every: 100 });
      await loop.run(rest, note);
      expect(Object.fromEntries(lines)).toEqual(Object.fromEntries(calm.lines));
      expect(rest.training.weights).toEqual(calm.training.weights);
    },
  );

  it('with no steps left says so, and trains nothing; with more, it goes on', async () => {
    const memory = new MemoryCheckpoints();
    await loop.run(memory.open({ every: 100 }), () => undefined);
    const steps = memory.saved!.position.step;
    expect(memory.steps).toEqual([steps]);
    const again = memory.open({ every: 100 });
    const { notices } = await loop.run(again, () => expect.unreachable());
    expect(notices).toEqual([
      expect.stringMatching(new RegExp(`^nothing left to train: the run has its ${steps} steps; raise`)),
    ]);
    expect(again.training.calls).not.toContain('optim-step');
    const seen: number[] = [];
    await loop.run(memory.open({ every: 100 }), (step) => void seen.push(step), { steps: steps + 4 });
    expect(seen).toEqual([1, 2, 3, 4].map((n) => steps + n));
  });
});

/** The last problem or example is there twice; groups are small, so that an epoch lasts several steps. */
const doubled: [string, Loop][] = [
  ['GRPO', grpo({ problems: [...problems, problems[0]!], groupsPerStep: 1 })],
  ['SFT', sftOver([...data, data[0]!])],
];

describe.each(doubled)('alarms of %s whose evidence lies before and after a resume', (_name, loop) => {
  /** Lives of one step each, on the same checkpoints. */
  async function liveByStep(
    memory: MemoryCheckpoints,
    change: (position: LoopPosition) => LoopPosition = (same) => same,
  ) {
    const raised: Alarm[] = [];
    for (let life = 1, isOver = false; !isOver; life++) {
      expect(life).toBeLessThan(20);
      let passes = 0;
      const onCall = (call: string): void => {
        if (call === 'optim-step' && passes++ > 0) throw new Error('killed');
      };
      const { training, checkpoints } = memory.open({ every: 1, onCall });
      const { resumed } = checkpoints;
      const part = { training, checkpoints: { ...checkpoints, ...(resumed && { resumed: change(resumed) }) } };
      isOver = await loop.run(part, noteAlarms(raised)).then(
        () => true,
        (error: Error) => error.message !== 'killed',
      );
    }
    return raised.map(alarmText);
  }

  it('are raised at the step at which an undisturbed run raises them', async () => {
    const calm: Alarm[] = [];
    await loop.run({ training: new Bandit() }, noteAlarms(calm));
    const twice = calm.find(({ name }) => name === 'guard/rows-twice');
    expect(twice?.step).toBeGreaterThan(1);
    expect(await liveByStep(new MemoryCheckpoints())).toEqual(calm.map(alarmText));
  });

  it('are not, and no others, where a checkpoint has no guard in it, as those of before', async () => {
    const without = ({ state, ...rest }: LoopPosition): LoopPosition => {
      const { guard, ...own } = state as Readonly<Record<string, JsonValue>>; // true: a loop's state is an object
      expect(guard).toBeDefined();
      return { ...rest, state: own };
    };
    const texts = await liveByStep(new MemoryCheckpoints(), without);
    expect(texts.filter((text) => text.startsWith('guard/rows'))).toEqual([]);
  });
});

function noteAlarms(raised: Alarm[]): Note {
  return (_step, line) => void raised.push(...(line as { readonly alarms: readonly Alarm[] }).alarms); // true: the loops here note them
}

it('what overlaps is gone on with too: each problem once, none lost', async () => {
  const memory = new MemoryCheckpoints();
  // No group is ever dead, so every problem is trained.
  let flips = 0;
  const environment: Environment = { ...copyEnvironment, grade: () => ({ status: 'ok', reward: flips++ % 2 }) };
  const loop = grpo({ environment, maxStepsOffPolicy: 2 });
  const indices: number[] = [];
  const note: Note = (_step, line) =>
    indices.push(...(line as { problems: [number][] }).problems.map(([index]) => index)); // true: grpo notes this
  let steps = 0;
  const onCall = (name: string): void => {
    if (name === 'optim-step' && ++steps === 4) throw new Error('killed');
  };
  await expect(loop.run(memory.open({ every: 1, onCall }), note)).rejects.toThrow('killed');
  await loop.run(memory.open({ every: 1 }), note);
  expect(indices.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 21 }, (_, i) => i));
});

it('the end of an epoch is told once, also where a run goes on just there', async () => {
  const memory = new MemoryCheckpoints();
  const loop = grpo({ problems: problems.slice(0, 3) });
  const first = await loop.run(memory.open({ every: 1 }), () => undefined, { steps: 1 });
  const second = await loop.run(memory.open({ every: 1 }), () => undefined, { steps: 2 });
  expect([first.notices, second.notices]).toEqual([[], [expect.stringMatching(/^epoch 1 of 3 problems has ended/)]]);
});

it('where another loop stood is refused before any work', async () => {
  const memory = new MemoryCheckpoints();
  await grpo({}).run(memory.open({ every: 1 }), () => undefined, { steps: 1 });
  const { training, checkpoints } = memory.open({ every: 1 });
  const error = await rejection(sft.run({ training, checkpoints }, () => undefined));
  expect(error).toMatchObject({ code: 'data_invalid', message: expect.stringContaining('of the kind grpo') });
  const odd = { ...checkpoints, resumed: { loop: 'sft', step: 1, state: { epoch: -1 } } };
  expect((await rejection(sft.run({ training, checkpoints: odd }, () => undefined))).code).toBe('data_invalid');
  expect(training.calls).toEqual([]);
});

describe('the steps of a loop of one’s own', () => {
  /** Draws an example a step; the random stream is what it has to know. */
  async function train({ training, ...part }: Part, rows: Map<number, number>): Promise<void> {
    let random = createRandom(7);
    const state = () => ({ random: random.state });
    const restore = (saved: ReturnType<typeof state>): void => {
      random = createRandom(saved.random);
    };
    const onNotice = ({ message }: { readonly message: string }) => expect.fail(message);
    for await (const step of resumableSteps({ loop: 'own', steps: 7, state, restore, onNotice, ...part })) {
      const row = random.integer(data.length);
      rows.set(step, row);
      await Promise.all([training.forwardBackward([data[row]!], 'cross_entropy'), training.optimStep()]);
    }
  }

  it('are gone on with after a kill and after an abort, as if nothing had happened', async () => {
    const calm = { training: new Bandit(), rows: new Map<number, number>() };
    await train(calm, calm.rows);
    const memory = new MemoryCheckpoints();
    const rows = new Map<number, number>();
    let steps = 0;
    const onCall = (name: string): void => {
      if (name === 'optim-step' && ++steps === 4) throw new Error('killed');
    };
    await expect(train(memory.open({ every: 2, onCall }), rows)).rejects.toThrow('killed');
    expect(memory.steps).toEqual([2]);
    const controller = new AbortController();
    const abort = (name: string): void => {
      if (name === 'optim-step' && ++steps === 7) controller.abort();
    };
    const part = { ...memory.open({ every: 2, onCall: abort }), signal: controller.signal };
    expect(await rejection(train(part, rows))).toMatchObject({
      code: 'cancelled',
      message: expect.stringContaining('step 5'),
    });
    expect(memory.steps).toEqual([2, 4, 5]);
    const last = memory.open({ every: 2 });
    await train(last, rows);
    expect(memory.steps).toEqual([2, 4, 5, 6, 7]);
    expect(Object.fromEntries(rows)).toEqual(Object.fromEntries(calm.rows));
    expect(last.training.weights).toEqual(calm.training.weights);
  });

  it('refuse the place of another loop', async () => {
    const memory = new MemoryCheckpoints();
    await sft.run(memory.open({ every: 1 }), () => undefined);
    expect((await rejection(train(memory.open({ every: 1 }), new Map()))).code).toBe('data_invalid');
  });
});
