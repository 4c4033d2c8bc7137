import {
  expectClose,
  norm,
  type OptimizerExpected,
  readFixtureJson,
  readFixtureTensors,
  tolerances,
} from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { adamUpdate, clipFactor, globalNorm } from './adamw.js';

const { cases } = readFixtureJson<OptimizerExpected>('optim/expected.json');

describe.each(Object.entries(cases))('AdamW, case %s', (name, { inputs, params, ...expected }) => {
  it('gives the parameters and moments of torch on given gradients', async () => {
    const input = await readFixtureTensors(inputs);
    const reference = await readFixtureTensors(`optim/${name}.safetensors`);
    const names = [...input.keys()].flatMap((key) => (key.startsWith('param.') ? [key.slice('param.'.length)] : []));
    const state = new Map(
      names.map((key) => {
        const values = input.get(`param.${key}`)!.data.slice();
        return [key, { values, m: new Float32Array(values.length), v: new Float32Array(values.length) }];
      }),
    );
    let compared = 0;
    for (const step of [1, 2, 3]) {
      const gradients = new Map(names.map((key) => [key, input.get(`step${step}.grad.${key}`)!.data]));
      const gradNorm = globalNorm(gradients.values());
      expectClose(gradNorm, expected.grad_norms_before_clipping[step - 1]!, tolerances.gradientNorm);
      const gradientScale = clipFactor(gradNorm, params.grad_clip_norm);
      expectClose(gradientScale, expected.clip_factors[step - 1]!, tolerances.gradientNorm);
      for (const [key, { values, ...moments }] of state) {
        const ratio = key.includes('lora_B') ? params.lora_plus_lr_ratio : 1;
        adamUpdate(values, gradients.get(key), moments, {
          learningRate: params.learning_rate * ratio,
          beta1: params.beta1,
          beta2: params.beta2,
          eps: params.eps,
          weightDecay: params.weight_decay,
          gradClipNorm: params.grad_clip_norm,
          loraPlusLrRatio: params.lora_plus_lr_ratio,
          step,
          gradientScale,
        });
        const check = (
          part: string,
          actual: Float32Array,
          tolerance: (typeof tolerances)['adamParameter' | 'adamFirstMoment' | 'adamSecondMoment'],
        ) => {
          const stored = reference.get(`step${step}.${part}.${key}`);
          if (stored === undefined) return;
          expectClose(actual, stored.data, tolerance, { label: `step ${step} ${part} ${key}` });
          compared++;
        };
        check('param', values, tolerances.adamParameter);
        check('exp_avg', moments.m, tolerances.adamFirstMoment);
        check('exp_avg_sq', moments.v, tolerances.adamSecondMoment);
      }
    }
    expect(compared).toBeGreaterThan(0);
    expect(compared).toBe([...reference.keys()].length);
  });
});

describe('adamUpdate', () => {
  const options = {
    learningRate: 0.1,
    beta1: 0.9,
    beta2: 0.99,
    eps: 1e-8,
    weightDecay: 0.5,
    gradClipNorm: 0,
    loraPlusLrRatio: 1,
    step: 1,
    gradientScale: 1,
  };

  it('takes a missing gradient as zeros: moments and weights decay', () => {
    const [values, m, v] = [Float32Array.of(2), Float32Array.of(1), Float32Array.of(1)];
    const [same, m2, v2] = [values.slice(), m.slice(), v.slice()];
    adamUpdate(values, undefined, { m, v }, options);
    adamUpdate(same, new Float32Array(1), { m: m2, v: v2 }, options);
    expect([values, m, v]).toEqual([same, m2, v2]);
    expect(m[0]).toBeCloseTo(0.9, 6);
    expect(v[0]).toBeCloseTo(0.99, 6);
  });

  it('does nothing to a weight whose gradient was always 0, without decay', () => {
    const values = Float32Array.of(0.25);
    adamUpdate(
      values,
      Float32Array.of(0),
      { m: new Float32Array(1), v: new Float32Array(1) },
      { ...options, weightDecay: 0 },
    );
    expect(values[0]).toBe(0.25);
  });
});

describe('clipping', () => {
  it('scales by clip / (norm + 1e-6), never up, and 0 is off', () => {
    expect(clipFactor(10, 1)).toBeCloseTo(0.1, 6);
    expect(clipFactor(0.5, 1)).toBe(1);
    expect(clipFactor(1e9, 0)).toBe(1);
    expect(clipFactor(0, 1)).toBe(1);
  });

  it('takes the norm over all arrays', () => {
    const arrays = [Float32Array.of(3, 0), Float32Array.of(4), new Float32Array(0)];
    expect(globalNorm(arrays)).toBe(5);
    expect(globalNorm(arrays)).toBe(norm([3, 0, 4]));
    expect(globalNorm([])).toBe(0);
  });
});
