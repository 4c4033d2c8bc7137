/** A guard that goes on with what another remembered sees what one that never stopped sees. */
import { describe, expect, it } from 'vitest';
import { createRandom } from '../random.js';
import { type Alarm, alarmText } from './alarm.js';
import type { GroupFacts, StepFacts } from './facts.js';
import { createGuard, type Guard } from './guard.js';
import { type GuardState, savedRows } from './state.js';

const count = (length: number): number[] => Array.from({ length }, (_, i) => i + 1);

function look(guard: Guard, steps: readonly StepFacts[]): Alarm[] {
  return steps.flatMap((facts) => guard.look(facts));
}

/** What another process would read. */
function onPaper({ state }: Guard): GuardState {
  return JSON.parse(JSON.stringify(state)) as GuardState; // true: as it was
}

/** A group of answers that no other step has; of `length` tokens each, the last tells them apart. */
function group(step: number, rewards: readonly number[], { length = 3, spread = true, longer = 0 } = {}): GroupFacts {
  const samples = rewards.map((reward, i) => {
    const own = length + longer * reward;
    const tokens = Array.from({ length: own }, (_, t) => (spread ? 1000 * step + 100 * i + t : 7 + t));
    return { tokens: [...tokens, 5000 + i], logprobs: tokens.map(() => -1), reward };
  });
  return { prompt: [step, 1, 2], samples };
}

const update = (step: number, norm = 1, optimizer = step) => ({
  metrics: { 'optim/grad_norm': norm, 'optim/step': optimizer },
});

const rows = (step: number, keys: readonly string[], epoch = 0): StepFacts => ({
  step,
  rows: { keys, of: 6, epochs: keys.map(() => epoch) },
});

/** Alarms whose evidence is spread over steps. The last step of each raises it. */
const scripts: readonly (readonly [string, readonly StepFacts[]])[] = [
  [
    'guard/held-out-falls warn',
    [0.6, 0.5, 0.4].map((value, i) => ({
      step: i + 1,
      metrics: { 'reward/mean': 0.1 * i },
      validation: { step: i, metrics: { 'validation/accuracy': value, 'validation/low': value - 0.1 } },
    })),
  ],
  ['guard/rows-twice warn', [rows(1, ['a', 'b']), rows(2, ['c', 'd']), rows(3, ['e', 'a'])]],
  ['guard/rows-lost warn', [rows(1, ['a', 'b']), rows(2, ['c', 'd']), rows(3, ['e', 'a'], 1)]],
  [
    'guard/duplicate-rollouts warn',
    [1, 2, 1].map((kind, i) => ({ step: i + 1, groups: [group(kind, [0, 1, 0, 1], { length: 6 })] })),
  ],
  [
    'guard/std-collapse warn',
    count(10).map((step) => ({
      step,
      groups: [1, 2].map((g) => group(10 * step + g, step <= 5 ? [0, 1, 0, 1] : [0.5, 0.5, 0.5, 0.55])),
    })),
  ],
  ['guard/kl-zero warn', count(6).map((step) => ({ step, metrics: { 'kl/base': 0 }, update: update(step) }))],
  [
    'guard/kl-spike warn',
    [0.01, 0.02, 0.01, 0.02, 0.03, 0.9].map((kl, i) => ({ step: i + 1, metrics: { 'kl/base': kl } })),
  ],
  [
    'guard/gradient-exploding warn',
    [1, 2, 1, 2, 1, 50].map((norm, i) => ({ step: i + 1, update: update(i + 1, norm) })),
  ],
  [
    'guard/gradient-zero stop',
    count(5).map((step) => ({ step, update: update(step, 0), metrics: { 'tokens/trained': 9 } })),
  ],
  [
    'guard/reward-jump warn',
    count(6).map((step) => ({ step, groups: [group(step, step < 6 ? [0, 0, 0, 1] : [1, 1, 1, 1])] })),
  ],
  [
    'guard/length-exploitation warn',
    count(10).map((step) => ({
      step,
      groups: [group(step, [0, 1, 0, 1], { length: step <= 5 ? 4 : 10, longer: 2 })],
    })),
  ],
  [
    'guard/near-identical-samples warn',
    count(3).map((step) => ({ step, groups: [group(step, [0, 1, 0, 1], { length: 40, spread: false })] })),
  ],
  [
    'guard/grader-constant warn',
    count(3).map((step) => ({ step, groups: [1, 2].map((g) => group(10 * step + g, new Array(8).fill(0.5))) })),
  ],
  [
    'guard/dead-batch warn',
    count(3).map((step) => ({ step, groups: [1, 2].map((g) => group(10 * step + g, [g, g, g, g])) })),
  ],
  ['guard/resume-without-optimizer warn', [1, 2, 1].map((own, i) => ({ step: i + 1, update: update(i + 1, 1, own) }))],
  ['guard/learning-rate warn', count(11).map((step) => ({ step, learningRate: 0.01 }))],
];

describe.each(scripts)('%s', (name, steps) => {
  const calm = look(createGuard(), steps);

  it('is raised at the last step, and not by that alone', () => {
    expect(calm.filter(({ step }) => step === steps.length).map((each) => `${each.name} ${each.level}`)).toEqual([
      name,
    ]);
    expect(look(createGuard(), steps.slice(-1)).map(alarmText)).not.toContain(alarmText(calm.at(-1)!));
  });

  it.each(count(steps.length - 1))('is raised at the same step by a guard that goes on after step %d', (cut) => {
    const first = createGuard();
    const before = look(first, steps.slice(0, cut));
    const second = createGuard();
    second.restore(onPaper(first));
    expect([...before, ...look(second, steps.slice(cut))].map(alarmText)).toEqual(calm.map(alarmText));
    expect(onPaper(second)).toEqual(onPaper(lookedAt(steps)));
  });
});

function lookedAt(steps: readonly StepFacts[]): Guard {
  const guard = createGuard();
  look(guard, steps);
  return guard;
}

/** A run that nothing is wrong with, with all that a step can tell. */
function sound(step: number): StepFacts {
  const random = createRandom(step);
  const rewards = () => [0, 1, random.integer(2), random.integer(2)];
  const epoch = Math.floor((step - 1) / 3);
  const keys = [1, 2].map((n) => `row ${2 * ((step - 1) % 3) + n}`);
  return {
    step,
    groups: [1, 2, 3, 4].map((g) => group(10 * step + g, rewards(), { length: 8 })),
    metrics: { 'kl/base': 0.001 * step, 'loss/mean': 1 / step },
    update: update(step, 1 + random.next()),
    learningRate: 1e-4,
    sampler: {},
    rows: { keys, of: 6, epochs: [epoch, epoch] },
    validation: { step: step - 1, metrics: { 'validation/accuracy': 0.5, 'validation/low': 0.4 } },
  };
}

it('a resume alone raises nothing, wherever it is', () => {
  const steps = count(60).map(sound);
  expect(look(createGuard(), steps)).toEqual([]);
  let guard = createGuard();
  for (const facts of steps) {
    expect(guard.look(facts)).toEqual([]);
    const next = createGuard();
    next.restore(onPaper(guard));
    guard = next;
  }
  expect(onPaper(guard)).toEqual(onPaper(lookedAt(steps)));
});

it('a sampler that is kept over a resume is one of its process: not stale because another was there before', () => {
  const first = createGuard();
  look(first, count(3).map(sound));
  const second = createGuard();
  second.restore(onPaper(first));
  const sampler = {};
  const raised = look(
    second,
    [4, 5].map((step) => ({ ...sound(step), sampler })),
  );
  expect(raised.map(({ name, seen }) => `${name}: ${seen}`)).toEqual([
    'guard/sampler-never-refreshed: the same sampler since the first step, over 1 optimizer steps',
  ]);
});

it('of an epoch of more rows than are saved nothing is told after a resume, and of the next everything', () => {
  const of = savedRows + 10;
  const keys = count(savedRows + 1).map((n) => `row ${n}`);
  const step = (n: number, own: readonly string[], epoch: number): StepFacts => ({
    step: n,
    rows: { keys: own, of, epochs: own.map(() => epoch) },
  });
  const first = lookedAt([step(1, keys, 0)]);
  const rest = [step(2, ['row 1'], 0), step(3, ['row 5'], 1), step(4, ['row 5'], 1)];
  const names = (guard: Guard) => look(guard, rest).map(({ name, step: at }) => `${name} ${at}`);
  const second = createGuard();
  second.restore(onPaper(first));
  expect(names(second)).toEqual(['guard/rows-twice 4']);
  expect(names(first)).toEqual(['guard/rows-twice 2', 'guard/rows-lost 3']);
});

it('what is saved has no ids of rows, and JSON holds all of it, whatever the numbers of a step are', () => {
  const guard = lookedAt([
    { ...rows(1, ['a secret']), metrics: { 'kl/base': Number.NaN, 'optim/lr': Number.POSITIVE_INFINITY } },
    { step: 2, groups: [group(1, [Number.NaN, Number.POSITIVE_INFINITY, 0.5, 1])] },
  ]);
  expect(onPaper(guard)).toEqual(guard.state);
  expect(JSON.stringify(guard.state)).not.toMatch(/secret/);
  createGuard().restore(onPaper(guard));
});

it('what is no such state is refused', () => {
  for (const wrong of [{}, { ...createGuard().state, updates: -1 }, { ...createGuard().state, groups: { a: 'b' } }])
    expect(() => createGuard().restore(wrong as GuardState)).toThrow(
      /^state\.\S+: expected what `state` of a guard gave/,
    ); // from a damaged file
});
