import { readdir } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { rejection } from '../testing/rejection.js';
import { type Alarm, alarmText } from './alarm.js';
import type { GroupFacts, StepFacts } from './facts.js';
import { createGuard, type GuardOptions } from './guard.js';
import { alarmRules } from './registry.js';

/** Answers of the given rewards, each of three tokens that no other has. */
function group(...rewards: readonly number[]): GroupFacts {
  return { samples: rewards.map((reward, i) => ({ tokens: [i, i + 100, i + 200], logprobs: [-1, -1, -1], reward })) };
}

function gradient(step: number, norm: number, more: Partial<StepFacts> = {}): StepFacts {
  return { step, update: { metrics: { 'optim/grad_norm': norm, 'optim/step': step } }, ...more };
}

/** Name, level and step of what is raised. */
async function raisedBy(steps: readonly StepFacts[], options: GuardOptions = {}): Promise<string[]> {
  const alarms: Alarm[] = [];
  const guard = createGuard({ ...options, onAlarm: (alarm) => void alarms.push(alarm) });
  for (const facts of steps) {
    await guard.observe(facts).catch((error: unknown) => {
      if (alarms.at(-1)?.level !== 'stop') throw error;
    });
  }
  return alarms.map(({ name, level, step }) => `${name} ${level} ${step}`);
}

const count = (length: number): number[] => Array.from({ length }, (_, i) => i + 1);

describe('a guard', () => {
  it('raises an alarm that goes on again after ten steps, and says how often it was seen', async () => {
    const guard = createGuard();
    const facts = (step: number): StepFacts => ({ step, learningRate: 0.01 });
    const raised = [];
    for (const step of count(12)) raised.push(...(await guard.observe(facts(step))));
    expect(raised.map(({ step, times }) => [step, times])).toEqual([
      [1, 1],
      [11, 11],
    ]);
    expect(alarmText(raised[1]!)).toMatch(
      /^guard\/learning-rate \[warn\] at step 11 \(seen in 11 steps\): 0\.01 for LoRA, .*\. See docs\/guides\/guard\/learning-rate\.md$/,
    );
  });

  it('raises a note once, and again only as something graver', async () => {
    const same = [group(0, 0, 0, 0), group(1, 1, 1, 1)];
    expect(await raisedBy(count(5).map((step) => ({ step, groups: same })))).toEqual([
      'guard/dead-batch note 1',
      'guard/dead-batch warn 3',
    ]);
  });

  it('leaves out what another alarm explains', async () => {
    const cut = (step: number): StepFacts => ({
      step,
      groups: count(4).map(() => ({
        samples: group(0, 0, 0, 0).samples.map((each) => ({ ...each, stopReason: 'length', status: 'unparsed' })),
      })),
    });
    expect(await raisedBy(count(4).map(cut))).toEqual(['guard/all-truncated warn 1']);
  });

  it('ends a run by an error that names alarm, step and page; onAlarm decides otherwise', async () => {
    const broken = gradient(3, Number.NaN);
    expect(await rejection(createGuard().observe(broken))).toMatchObject({
      code: 'guard_stopped',
      message: expect.stringMatching(/^guard\/gradient-not-finite \[stop\] at step 3: .*no gradient is pending/),
      details: { alarm: 'guard/gradient-not-finite', step: 3, page: 'docs/guides/guard/gradient-not-finite.md' },
    });
    const lenient = createGuard({ onAlarm: () => 'continue' });
    expect(await lenient.observe(broken)).toHaveLength(1);
    const strict = createGuard({ onAlarm: () => Promise.resolve('stop') });
    const error = await rejection(strict.observe({ step: 1, learningRate: 0.01 }));
    expect(error).toMatchObject({ details: { alarm: 'guard/learning-rate', level: 'warn' } });
  });

  it('tells all alarms of a step before it ends the run, and passes on what onAlarm throws', async () => {
    const told: string[] = [];
    const guard = createGuard({ onAlarm: ({ name }) => void told.push(name) });
    await rejection(guard.observe({ ...gradient(1, Number.NaN), learningRate: 0.01 }));
    expect(told).toEqual(['guard/gradient-not-finite', 'guard/learning-rate']);
    const throwing = createGuard({
      onAlarm: () => {
        throw new Error('mine');
      },
    });
    await expect(throwing.observe({ step: 1, learningRate: 0.01 })).rejects.toThrow('mine');
  });

  it('goes by limits that are given, and leaves alarms out that are off', async () => {
    const steps = [{ step: 1, learningRate: 0.01 }];
    expect(await raisedBy(steps, { limits: { 'guard/learning-rate': { loraHigh: 0.02 } } })).toEqual([]);
    expect(await raisedBy(steps, { off: ['guard/learning-rate'] })).toEqual([]);
    expect(await raisedBy([{ step: 1, learningRate: 1e-3 }], { training: 'full' })).toEqual([
      'guard/learning-rate warn 1',
    ]);
  });

  it('refuses names that there are not, and steps that are none', async () => {
    // from a program without types
    for (const options of [
      { off: ['guard/nothing'] },
      { limits: { 'guard/nothing': {} } },
      { limits: { 'guard/ratio': { tolerence: 1 } } },
      { limits: { 'guard/ratio': { tolerance: '1' } } },
    ])
      expect(() => createGuard(options as GuardOptions)).toThrow(/^guard\.(off|limits).*expected/);
    expect(await rejection(createGuard().observe({ step: -1 }))).toMatchObject({ code: 'invalid_argument' });
  });

  it('raises nothing of a step that says nothing', async () => {
    expect(await raisedBy(count(30).map((step) => ({ step })))).toEqual([]);
  });
});

describe('single rules', () => {
  it('names the worst token where ratios are off, and leaves groups of older weights out', async () => {
    const datum = {
      modelInput: [5, 6, 7],
      lossFnInputs: { targetTokens: [6, 7, 8], weights: [0, 1, 1], logprobs: [0, -1, -2], advantages: [0, 1, 1] },
    };
    const facts = { step: 1, data: [datum], outputs: [{ logprobs: [-9, -1.001, -2.5] }] };
    const [alarm] = await createGuard({ onAlarm: () => 'continue' }).observe(facts);
    expect(alarm).toMatchObject({
      name: 'guard/ratio',
      level: 'stop',
      where: 'worst: datum 0, position 2, token id 8: trainer -2.5000, sampler -2.0000, ratio 0.6065',
    });
    expect(await raisedBy([{ ...facts, sources: [{ parts: [], age: 1 }] }])).toEqual([]);
  });

  it('takes a gradient for too large only where it is so for each datum too', async () => {
    const before = count(6).map((step) => gradient(step, 1, { data: [] }));
    const datum = { modelInput: [1], lossFnInputs: { targetTokens: [2] } };
    const grown = (datums: number): StepFacts => gradient(7, 20, { data: new Array(datums).fill(datum) });
    expect(await raisedBy([...before, grown(1)])).toEqual(['guard/gradient-exploding warn 7']);
    expect(await raisedBy([...before, grown(16)])).toEqual([]);
  });

  it('is silent about equal answers of a model that is sure, and about the highest reward', async () => {
    const sure = { tokens: [1, 2, 3, 4], logprobs: [-0.01, -0.01, -0.01, -0.01], reward: 1 };
    const solved = (step: number): StepFacts => ({
      step,
      groups: count(8).map((_, g) => ({
        samples: count(8).map(() => (step === 1 && g === 0 ? { ...sure, reward: 0 } : sure)),
      })),
    });
    const graver = (await raisedBy(count(8).map(solved))).filter((text) => !text.includes(' note '));
    expect(graver).toEqual([]);
  });

  it('knows rows that come twice, or not at all, in whatever order epochs overlap', async () => {
    const rows = (step: number, keys: readonly number[], epochs?: readonly number[]): StepFacts => ({
      step,
      rows: { keys, of: 4, ...(epochs === undefined ? {} : { epochs, slack: 2 }) },
    });
    expect(await raisedBy([rows(1, [0, 1]), rows(2, [2, 3]), rows(3, [3, 0]), rows(4, [1, 2])])).toEqual([]);
    expect(await raisedBy([rows(1, [0, 1]), rows(2, [1, 3]), rows(3, [0, 2])])).toEqual([
      'guard/rows-twice warn 2',
      'guard/rows-lost warn 3',
    ]);
    const overlapping = [rows(1, [0, 1, 2, 9], [0, 0, 0, 1]), rows(2, [3, 8], [0, 1]), rows(3, [7, 6], [1, 1])];
    expect(await raisedBy(overlapping)).toEqual([]);
    expect(await raisedBy([rows(1, [0, 1, 2], [0, 0, 0]), rows(2, [7, 8, 9], [1, 1, 1])])).toEqual([
      'guard/rows-lost warn 2',
    ]);
  });

  it('warns of two falls of what is held out only where they are more than chance', async () => {
    const falls = (values: readonly number[]): StepFacts[] =>
      values.map((value, i) => ({
        step: i + 1,
        metrics: { 'reward/mean': 0.1 * i },
        validation: { step: i, metrics: { 'validation/accuracy': value, 'validation/low': value - 0.1 } },
      }));
    expect(await raisedBy(falls([0.6, 0.5, 0.4]))).toEqual(['guard/held-out-falls warn 3']);
    expect(await raisedBy(falls([0.6, 0.58, 0.57]))).toEqual(['guard/held-out-falls note 3']);
    expect(await raisedBy(falls([0.6, 0.5, 0.55]))).toEqual([]);
  });
});

it('every alarm has a page, and every page an alarm', async () => {
  const pages = await readdir(new URL('../../../../docs/guides/guard/', import.meta.url));
  const named = alarmRules.map(({ name }) => `${name.slice('guard/'.length)}.md`);
  expect(pages.toSorted()).toEqual(named.toSorted());
  expect(new Set(named).size).toBe(named.length);
});

it('what an alarm explains is an alarm', () => {
  const names: readonly string[] = alarmRules.map(({ name }) => name);
  for (const rule of alarmRules)
    for (const name of 'explains' in rule ? rule.explains : []) expect(names).toContain(name);
});
