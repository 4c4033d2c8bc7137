import { type Datum, floatTensor, idTensor, type LossSpec } from '@loopwright/protocol';
import {
  expectClose,
  expectSameBits,
  type LoraBatch,
  type LoraExpected,
  readFixtureJson,
  readFixtureTensors,
  rejection,
  tolerances,
} from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import type { ExecutionPlan } from '../../engine.js';
import { tinyBase } from '../testing/tiny-base.js';
import { adam, crossEntropy, datum, lossData } from '../testing/tiny-engine.js';
import { adapterSession, finish, forwardBackward, newSession, parameterName } from '../testing/training.js';
import { globalNorm } from './adamw.js';
import type { TrainingSession } from './training-session.js';

function copyGradient(session: TrainingSession): Map<string, Float32Array> {
  return new Map([...(session.gradient ?? [])].map(([name, values]) => [name, values.slice()]));
}

function expectSameGradient(session: TrainingSession, before: ReadonlyMap<string, Float32Array>): void {
  expect([...(session.gradient?.keys() ?? [])]).toEqual([...before.keys()]);
  for (const [name, values] of before) expectSameBits(session.gradient!.get(name)!, values, name);
}

describe('the pending gradient', () => {
  const batch = readFixtureJson<LoraBatch>('lora/llama-tied/batch.json');
  const { losses } = readFixtureJson<LoraExpected>('lora/llama-tied/expected.json');

  it('of three calls is that of one, with each call as the reference has it', async () => {
    await using model = await tinyBase('llama-tied');
    const one = await adapterSession(model.base, 'llama-tied');
    const three = await adapterSession(model.base, 'llama-tied');
    const single = await adapterSession(model.base, 'llama-tied');
    const data = lossData(batch, 'cross_entropy', losses!.cross_entropy!);
    await forwardBackward(one, data, crossEntropy);
    for (const [i, part] of data.entries()) {
      await forwardBackward(three, [part], crossEntropy);
      single.clearGradient();
      await forwardBackward(single, [part], crossEntropy);
      const reference = await readFixtureTensors(`accumulation/cross_entropy.datum${i}.safetensors`);
      for (const [name, { data: values }] of reference)
        expectClose(single.gradient!.get(parameterName(name))!, values, tolerances.gradient, { label: `${i} ${name}` });
    }
    for (const [name, values] of one.gradient!)
      expectClose(three.gradient!.get(name)!, values, tolerances.accumulation, { label: name });
  });

  it('and the outputs are the same however the pass is cut, in the order of the input', async () => {
    await using model = await tinyBase('llama-tied');
    const data = [5, 40, 17, 3, 33, 16, 1, 29].map((length, seed) => datum(length, seed));
    const run = async (plan: Partial<ExecutionPlan>) => {
      const session = await adapterSession(model.base, 'llama-tied', plan);
      const result = await forwardBackward(session, data, crossEntropy);
      return { result, gradient: session.gradient! };
    };
    const whole = await run({ microBatchTokens: 8192 });
    const cuts = [
      { microBatchTokens: 1 }, // eight micro-batches of one datum
      { microBatchTokens: 96 }, // two or more a micro-batch
      { microBatchTokens: 160 },
      { microBatchTokens: 8192, lengthMultiple: 64 }, // other padding
      { microBatchTokens: 1, lengthMultiple: 1 }, // none
    ];
    for (const cut of cuts) {
      const other = await run(cut);
      const label = JSON.stringify(cut);
      data.forEach(({ modelInput }, i) => {
        const [a, b] = [other.result.outputs[i]!, whole.result.outputs[i]!];
        expect(a.logprobs).toHaveLength(modelInput.length);
        expectClose(a.logprobs, b.logprobs, tolerances.tinyLogprobs, { label });
        expectClose(a.loss, b.loss, tolerances.lossSum, { label, magnitude: b.loss + 1 });
      });
      for (const [name, values] of whole.gradient)
        expectClose(other.gradient.get(name)!, values, tolerances.gradient, { label: `${label} ${name}` });
    }
  });

  it('and the numbers are the same bits when the same pass is run again', async () => {
    await using model = await tinyBase('qwen3');
    const data = [9, 40, 23].map((length, seed) => datum(length, seed));
    const [a, b] = [await adapterSession(model.base, 'qwen3'), await adapterSession(model.base, 'qwen3')];
    const [first, second] = [
      await forwardBackward(a, data, crossEntropy),
      await forwardBackward(b, data, crossEntropy),
    ];
    for (const [i, { logprobs }] of first.outputs.entries()) expectSameBits(second.outputs[i]!.logprobs, logprobs);
    expectSameGradient(b, copyGradient(a));
  });

  it('is bit-identical after a pass that was given up half way, or that failed', async () => {
    await using model = await tinyBase('llama-tied');
    const session = await adapterSession(model.base, 'llama-tied', { microBatchTokens: 16 });
    await forwardBackward(session, [datum(9), datum(12, 1)], crossEntropy);
    const before = copyGradient(session);

    const abandoned = session.pass({ type: 'forward-backward', data: [datum(16), datum(15, 1)], loss: crossEntropy });
    await abandoned.next();
    await abandoned.return(undefined as never);
    expectSameGradient(session, before);

    // A ratio of e^80 and a large advantage overflow float32; the first micro-batch is fine.
    const bad = {
      ...datum(3),
      weights: floatTensor(Float32Array.of(1, 1, 1)),
      advantages: floatTensor(Float32Array.of(1, 1e30, 1)),
      logprobs: floatTensor(Float32Array.of(-1, -1000, -1)),
    };
    const fine = {
      ...datum(16),
      advantages: floatTensor(new Float32Array(16)),
      logprobs: floatTensor(new Float32Array(16)),
    };
    const failing = rejection(forwardBackward(session, [fine, bad], { name: 'importance_sampling' }));
    expect(await failing).toMatchObject({ code: 'operation_failed', details: { field: 'data[1]' } });
    expectSameGradient(session, before);

    const huge = { ...bad, weights: floatTensor(Float32Array.of(0, 3e38, 3e38)) };
    expect(await rejection(forwardBackward(session, [huge], crossEntropy))).toMatchObject({ code: 'operation_failed' });
    expectSameGradient(session, before);
  });

  it('is not touched by a forward pass', async () => {
    await using model = await tinyBase('llama-tied');
    const session = newSession(model.base);
    await finish(session.pass({ type: 'forward', data: [datum(8)], loss: crossEntropy }));
    expect(session.gradient).toBeUndefined();
    expect(session.hasTrained).toBe(false);
  });

  it('is zero for zero weights, and a step without one lets moments decay', async () => {
    await using model = await tinyBase('llama-tied');
    const session = newSession(model.base);
    const nothing = { ...datum(8), weights: floatTensor(new Float32Array(8)) };
    const { lossSum } = await forwardBackward(session, [nothing], crossEntropy);
    expect(lossSum).toBe(0);
    expect(globalNorm(session.gradient!.values())).toBe(0);
    const values = session.parameters.get('layers.0.q_proj.lora_A')!.values.slice();
    expect(await finish(session.optimStep(adam))).toMatchObject({ step: 1, gradNorm: 0 });
    expect(await finish(session.optimStep(adam))).toMatchObject({ step: 2, gradNorm: 0 });
    expectSameBits(session.parameters.get('layers.0.q_proj.lora_A')!.values, values);
  });
});

describe('a position of weight 0', () => {
  it('may hold any logprob and advantage without a trace in loss or gradient', async () => {
    await using model = await tinyBase('llama-tied');
    const plain = datum(10);
    const weights = floatTensor(Float32Array.from({ length: 10 }, (_, i) => (i < 4 ? 0 : 1)));
    const withJunk = (junk: number) => {
      const at = (value: number) => floatTensor(Float32Array.from({ length: 10 }, (_, i) => (i < 4 ? junk : value)));
      return { ...plain, weights, advantages: at(0.5), logprobs: at(-5), refLogProb: at(-4) };
    };
    const specs: LossSpec[] = [
      crossEntropy,
      { name: 'importance_sampling' },
      { name: 'ppo', clipLowThreshold: 0.8, clipHighThreshold: 1.2 },
      { name: 'cispo', clipLowThreshold: 0.8, clipHighThreshold: 1.2 },
      { name: 'dro', beta: 0.05 },
    ];
    for (const loss of specs) {
      const clean = await adapterSession(model.base, 'llama-tied');
      const expected = await forwardBackward(clean, [withJunk(-1)], loss);
      for (const junk of [Number.NaN, Number.NEGATIVE_INFINITY, -3e38, 3e38]) {
        const session = await adapterSession(model.base, 'llama-tied');
        const result = await forwardBackward(session, [withJunk(junk)], loss);
        expect(result.lossSum).toBe(expected.lossSum);
        expect(Object.values(result.metrics).every(Number.isFinite)).toBe(true);
        expectSameBits(result.outputs[0]!.logprobs, expected.outputs[0]!.logprobs);
        expectSameGradient(session, copyGradient(clean));
      }
    }
  });
});

describe('temperature', () => {
  it('divides the logits, token by token', async () => {
    await using model = await tinyBase('llama-untied');
    const session = newSession(model.base);
    const temperatures = Float32Array.from({ length: 6 }, (_, i) => [1, 0.5, 2][i % 3]!);
    const plain = datum(6);
    // Every token as a target gives the whole distribution at each position.
    const everyToken = Int32Array.from({ length: 6 * 300 }, (_, i) => i % 300);
    const all = {
      modelInput: plain.modelInput,
      targetTokens: idTensor(everyToken, [6, 300]),
      weights: floatTensor(new Float32Array(6 * 300), [6, 300]),
    };
    const run = async (data: Datum) =>
      (await finish(session.pass({ type: 'forward', data: [data], loss: crossEntropy }))).outputs[0]!.logprobs;
    const [reference, tempered] = [await run(all), await run({ ...plain, temperature: floatTensor(temperatures) })];
    for (let t = 0; t < 6; t++) {
      const logits = [...reference.subarray(t * 300, (t + 1) * 300)].map((lp) => lp / temperatures[t]!);
      const total = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit), 0));
      expectClose(tempered[t]!, logits[plain.targetTokens.data[t]!]! - total, {
        ...tolerances.tinyLogprobs,
        abs: 1e-4,
      });
    }
  });
});

describe('data that cannot be trained on is refused before any work', () => {
  const good = datum(6);
  const rl = { advantages: floatTensor(new Float32Array(6)), logprobs: floatTensor(new Float32Array(6)) };
  const ppo: LossSpec = { name: 'ppo', clipLowThreshold: 0.8, clipHighThreshold: 1.2 };
  const ones = floatTensor(new Float32Array(6).fill(1));
  const cases = [
    ['no datum', [], crossEntropy, 'data'],
    [
      'an empty datum',
      [good, { modelInput: new Int32Array(0), targetTokens: idTensor(new Int32Array(0)) }],
      crossEntropy,
      'data[1].modelInput',
    ],
    [
      'a token outside the vocabulary',
      [{ ...good, modelInput: Int32Array.of(1, 2, 3, 300, 5, 6) }],
      crossEntropy,
      'data[0].modelInput[3]',
    ],
    [
      'a negative target',
      [{ ...good, targetTokens: idTensor(Int32Array.of(1, -1, 3, 4, 5, 6)) }],
      crossEntropy,
      'data[0].lossFnInputs.targetTokens[1]',
    ],
    [
      'a target too few',
      [{ ...good, targetTokens: idTensor(new Int32Array(5)) }],
      crossEntropy,
      'data[0].lossFnInputs.targetTokens',
    ],
    [
      'a weight too many',
      [{ ...good, weights: floatTensor(new Float32Array(7)) }],
      crossEntropy,
      'data[0].lossFnInputs.weights',
    ],
    [
      'a weight that is NaN',
      [{ ...good, weights: floatTensor(new Float32Array(6).fill(Number.NaN)) }],
      crossEntropy,
      'data[0].lossFnInputs.weights[0]',
    ],
    ['no logprobs', [{ ...good, advantages: rl.advantages }], ppo, 'data[0].lossFnInputs.logprobs'],
    [
      'a logprob too few',
      [{ ...good, ...rl, logprobs: floatTensor(new Float32Array(5)) }],
      ppo,
      'data[0].lossFnInputs.logprobs',
    ],
    [
      'a NaN logprob that counts',
      [good, { ...good, ...rl, logprobs: floatTensor(Float32Array.of(0, 0, 0, Number.NaN, 0, 0)) }].slice(1),
      ppo,
      'data[0].lossFnInputs.logprobs[3]',
    ],
    [
      'an infinite advantage',
      [{ ...good, ...rl, weights: ones, advantages: floatTensor(new Float32Array(6).fill(Number.POSITIVE_INFINITY)) }],
      ppo,
      'data[0].lossFnInputs.advantages[0]',
    ],
    [
      'several targets for ppo',
      [
        {
          ...good,
          ...rl,
          targetTokens: idTensor(new Int32Array(12), [6, 2]),
          weights: floatTensor(new Float32Array(12), [6, 2]),
        },
      ],
      ppo,
      'data[0].lossFnInputs.targetTokens',
    ],
    [
      'a temperature of 0',
      [{ ...good, temperature: floatTensor(new Float32Array(6)) }],
      crossEntropy,
      'data[0].lossFnInputs.temperature[0]',
    ],
  ] as const;

  it.each(cases)('%s', async (_, data, loss, field) => {
    await using model = await tinyBase('llama-tied');
    const session = newSession(model.base);
    const error = await rejection(session.pass({ type: 'forward-backward', data, loss }).next());
    expect(error).toMatchObject({ code: 'invalid_argument', details: { field } });
    expect(session.hasTrained).toBe(false);
  });

  it('a datum longer than the context', async () => {
    await using model = await tinyBase('llama-tied');
    const error = await rejection(
      newSession(model.base)
        .pass({ type: 'forward', data: [datum(513)], loss: crossEntropy })
        .next(),
    );
    expect(error).toMatchObject({ code: 'context_length_exceeded', details: { got: '513 tokens' } });
  });
});

describe('a step', () => {
  it('on a gradient that is not finite changes no weight and clears it', async () => {
    await using model = await tinyBase('llama-tied');
    const session = await adapterSession(model.base, 'llama-tied');
    await forwardBackward(session, [datum(8)], crossEntropy);
    const [name, gradient] = [...session.gradient!][0]!;
    gradient[0] = Number.NaN;
    const before = session.parameters.get(name)!.values.slice();
    expect(await rejection(finish(session.optimStep(adam)))).toMatchObject({ code: 'operation_failed' });
    expectSameBits(session.parameters.get(name)!.values, before);
    expect(session.gradient).toBeUndefined();
    expect(session.step).toBe(0);
  });
});
