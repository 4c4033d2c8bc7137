/** Datums from the wire: what is accepted, and that every refusal names its place. */
import { LoopwrightError } from '@loopwright/protocol';
import { expect, test } from 'vitest';
import type { JsonObject } from '../checks.js';
import { parseJson } from '../checks.js';
import { arnMap } from './arn.js';
import { datumFromInputs, decodeDatum } from './datum.js';
import { decodeTrainingRequest, encodeTrainingRequest } from './training-operation.js';

const arns = arnMap();

function tensor(data: readonly unknown[], dtype = 'float32'): JsonObject {
  return { data, dtype };
}

function wireDatum(inputs: JsonObject = {}): JsonObject {
  return {
    modelInput: { chunks: [{ type: 'encoded_text', tokens: [5, 6, 7] }] },
    lossFnInputs: { target_tokens: tensor([6, 7, 8], 'int64'), weights: tensor([0, 1, 1]), ...inputs },
  };
}

function pass(datumList: readonly unknown[], more: JsonObject = {}): JsonObject {
  return {
    sequenceNumber: 1,
    operationConfig: { forwardBackward: { lossFnName: 'cross_entropy', datumList, ...more } },
  };
}

function refusal(run: () => unknown): LoopwrightError {
  try {
    run();
  } catch (error) {
    if (LoopwrightError.isInstance(error)) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

const rl = { advantages: tensor([0, 1, 1]), logprobs: tensor([0, -1, -2]) };
const list = 'operationConfig.forwardBackward.datumList';

test.each<[string, JsonObject, string]>([
  ['an empty list', pass([]), list],
  ['no model input', pass([{ lossFnInputs: wireDatum().lossFnInputs }]), `${list}[0].modelInput`],
  ['no chunks', pass([{ ...wireDatum(), modelInput: { chunks: [] } }]), `${list}[0].modelInput.chunks`],
  [
    'an empty chunk',
    pass([{ ...wireDatum(), modelInput: { chunks: [{ type: 'encoded_text', tokens: [] }] } }]),
    `${list}[0].modelInput.chunks[0].tokens`,
  ],
  [
    'another kind of chunk',
    pass([{ ...wireDatum(), modelInput: { chunks: [{ type: 'image', tokens: [1] }] } }]),
    `${list}[0].modelInput.chunks[0].type`,
  ],
  [
    'a negative token',
    pass([{ ...wireDatum(), modelInput: { chunks: [{ type: 'encoded_text', tokens: [1, -1] }] } }]),
    `${list}[0].modelInput.chunks[0].tokens.data[1]`,
  ],
  ['an unknown input', pass([wireDatum({ labels: tensor([1, 1, 1]) })]), `${list}[0].lossFnInputs.labels`],
  ['missing weights', pass([wireDatum(), wireDatum({ weights: undefined })]), `${list}[1].lossFnInputs.weights`],
  ['weights too short', pass([wireDatum({ weights: tensor([1, 1]) })]), `${list}[0].lossFnInputs.weights`],
  ['a NaN weight', pass([wireDatum({ weights: tensor([1, null, 1]) })]), `${list}[0].lossFnInputs.weights.data[1]`],
  [
    'a weight beyond float32',
    pass([wireDatum({ weights: tensor([1, 1, 1e39]) })]),
    `${list}[0].lossFnInputs.weights.data[2]`,
  ],
  [
    'a string as weight',
    pass([wireDatum({ weights: tensor([1, 1, '1']) })]),
    `${list}[0].lossFnInputs.weights.data[2]`,
  ],
  [
    'a target beyond int32',
    pass([wireDatum({ target_tokens: tensor([1, 2, 2 ** 31]) })]),
    `${list}[0].lossFnInputs.target_tokens.data[2]`,
  ],
  [
    'a fractional target',
    pass([wireDatum({ target_tokens: tensor([1, 2.5, 3]) })]),
    `${list}[0].lossFnInputs.target_tokens.data[1]`,
  ],
  [
    'an unknown dtype',
    pass([wireDatum({ weights: tensor([1, 1, 1], 'utf8') })]),
    `${list}[0].lossFnInputs.weights.dtype`,
  ],
  [
    'a shape of another size',
    pass([wireDatum({ weights: { ...tensor([1, 1, 1]), shape: [4] } })]),
    `${list}[0].lossFnInputs.weights.shape`,
  ],
  [
    'rows of different lengths',
    pass([wireDatum({ weights: tensor([[1], [1, 2], [1]]) })]),
    `${list}[0].lossFnInputs.weights.data[1]`,
  ],
  ['an unknown loss', pass([wireDatum()], { lossFnName: 'explode' }), 'operationConfig.forwardBackward.lossFnName'],
  [
    'an unknown config key',
    pass([wireDatum()], { lossFnConfig: { beta: 1 } }),
    'operationConfig.forwardBackward.lossFnConfig.beta',
  ],
  [
    'a threshold out of range',
    pass([wireDatum()], { lossFnConfig: { clip_low_threshold: 1.5 } }),
    'operationConfig.forwardBackward.lossFnConfig.clip_low_threshold',
  ],
  [
    'no old logprobs for ppo',
    pass([wireDatum({ advantages: rl.advantages })], { lossFnName: 'ppo' }),
    `${list}[0].lossFnInputs.logprobs`,
  ],
  [
    'old logprobs that are NaN where they count',
    pass([wireDatum({ ...rl, logprobs: tensor([null, null, 0]) })], { lossFnName: 'ppo' }),
    `${list}[0].lossFnInputs.logprobs.data[1]`,
  ],
  [
    'a temperature of 0',
    pass([wireDatum({ temperature: tensor([1, 0, 1]) })]),
    `${list}[0].lossFnInputs.temperature.data[1]`,
  ],
  [
    'two targets per position outside cross_entropy',
    pass([wireDatum({ ...rl, target_tokens: { ...tensor([1, 2, 3, 4, 5, 6]), shape: [3, 2] } })], {
      lossFnName: 'ppo',
    }),
    `${list}[0].lossFnInputs.target_tokens`,
  ],
])('%s is refused with its place', (_what, body, field) => {
  const error = refusal(() => decodeTrainingRequest(body, { arns }));
  expect(error.code).toBe('invalid_argument');
  expect(error.details.field).toBe(field);
  expect(error.message).toContain(field);
});

test('a missing input says which inputs the loss needs', () => {
  const error = refusal(() => decodeTrainingRequest(pass([wireDatum()], { lossFnName: 'dro' }), { arns }));
  expect(error.message).toContain('lossFnName dro needs target_tokens, weights, advantages, logprobs');
});

test('old logprobs that are not finite count as 0 where the weight is 0, as Python writes them too', () => {
  const text = JSON.stringify(wireDatum({ ...rl, logprobs: tensor(['NAN', -1, -2]) })).replace('"NAN"', 'NaN');
  const datum = decodeDatum(parseJson(text), 'datum', 'ppo');
  expect(datum.logprobs?.data).toEqual(Float32Array.of(0, -1, -2));
});

test('a body that is not JSON is refused without quoting it', () => {
  const error = refusal(() => parseJson('{"secret words'));
  expect(error.message).not.toContain('secret');
});

test('a long body that is not JSON is refused in one pass, and words in strings stay as they are', () => {
  const started = performance.now();
  refusal(() => parseJson('"\\"'.repeat(1_000_000)));
  expect(performance.now() - started).toBeLessThan(5_000); // a pattern for strings took hours
  expect(parseJson('{"NaN \\" NaN": [NaN, "-Infinity", -Infinity]}')).toEqual({
    'NaN " NaN': [null, '-Infinity', null],
  });
});

test('several chunks are one sequence', () => {
  const chunks = [
    { type: 'encoded_text', tokens: [5] },
    { type: 'encoded_text', tokens: [6, 7] },
  ];
  expect(decodeDatum({ ...wireDatum(), modelInput: { chunks } }, 'datum', 'cross_entropy')).toEqual(
    decodeDatum(wireDatum(), 'datum', 'cross_entropy'),
  );
});

test.each([
  ['flat with a shape', { ...tensor([1, 2, 3, 4, 5, 6], 'int64'), shape: [3, 2] }],
  ['as rows', tensor([[1, 2], [3, 4], [5, 6]], 'int64')], // biome-ignore format: one row a position
])('cross_entropy takes several targets per position, %s', (_how, targets) => {
  const weights = { ...tensor([1, 0, 1, 0, 1, 0]), shape: [3, 2] };
  const datum = decodeDatum(wireDatum({ target_tokens: targets, weights }), 'datum', 'cross_entropy');
  expect(datum.targetTokens).toEqual({ dtype: 'int32', shape: [3, 2], data: Int32Array.of(1, 2, 3, 4, 5, 6) });
  expect(datum.weights?.shape).toEqual([3, 2]);
});

test('one temperature holds for every position, and inputs that a loss does not read are left out', () => {
  const datum = decodeDatum(wireDatum({ temperature: tensor([0.5]), ...rl }), 'datum', 'cross_entropy');
  expect(datum.temperature?.data).toEqual(Float32Array.of(0.5, 0.5, 0.5));
  expect(datum).not.toHaveProperty('advantages');
});

test('a datum written in TypeScript equals the same datum of the wire', () => {
  const local = datumFromInputs(
    {
      modelInput: [5, 6, 7],
      lossFnInputs: {
        targetTokens: Int32Array.of(6, 7, 8),
        weights: [0, 1, 1],
        advantages: Float64Array.of(0, 1, 1),
        logprobs: [Number.NaN, -1, -2],
      },
    },
    'data[0]',
    'ppo',
  );
  expect(local).toEqual(decodeDatum(wireDatum({ ...rl, logprobs: tensor([null, -1, -2]) }), 'datum', 'ppo'));
});

test('a wrong datum written in TypeScript is named in its own spelling', () => {
  const error = refusal(() =>
    datumFromInputs(
      { modelInput: [1], lossFnInputs: { targetTokens: [2], weights: [1, 1] } },
      'data[3]',
      'cross_entropy',
    ),
  );
  expect(error.details.field).toBe('data[3].lossFnInputs.weights');
  const bigints = { modelInput: BigInt64Array.of(1n), lossFnInputs: { targetTokens: [2], weights: [1] } };
  expect(refusal(() => datumFromInputs(bigints, 'data[0]', 'cross_entropy')).details.field).toBe(
    'data[0].modelInput.data[0]',
  );
});

test('64 datums of 128 tokens are read and written in well under 5 ms each', () => {
  const tokens = Array.from({ length: 128 }, (_, i) => i * 7);
  const numbers = tokens.map((_, i) => Math.fround(-0.1 - Math.sin(i) ** 2));
  const datum = {
    modelInput: { chunks: [{ type: 'encoded_text', tokens }] },
    lossFnInputs: {
      target_tokens: tensor(tokens, 'int64'),
      weights: tensor(tokens.map(() => 1)),
      advantages: tensor(numbers),
      logprobs: tensor(numbers),
    },
  };
  const body = pass(new Array(64).fill(datum), { lossFnName: 'ppo' });
  const fastest = (work: () => unknown) => {
    let best = Number.POSITIVE_INFINITY;
    for (let i = 0; i < 20; i++) {
      const start = performance.now();
      work();
      best = Math.min(best, performance.now() - start);
    }
    return best;
  };
  const request = decodeTrainingRequest(body, { arns });
  // The best of many runs, so that a busy machine does not decide.
  expect(fastest(() => decodeTrainingRequest(body, { arns }))).toBeLessThan(5);
  expect(fastest(() => encodeTrainingRequest(request, { arns }))).toBeLessThan(5);
});
