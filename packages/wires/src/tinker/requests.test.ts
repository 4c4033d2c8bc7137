/** What requests of this wire mean: defaults, ranges, tensors in both layouts, and what is refused. */
import { create, toBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { bytesOf } from './buffers.js';
import { parseExactJson } from './exact-json.js';
import { decodePassJson, decodePassProto } from './forward-backward.js';
import { parseModelId, parseSavePath, saveNameAt } from './names.js';
import { decodeSampleRequest } from './sampling.js';
import { ForwardBackwardRequestSchema } from './tinker_pb.js';
import { decodeAdam, decodeLoad, decodeNewModel, decodeSave } from './training.js';

const prompt = { chunks: [{ type: 'encoded_text', tokens: [1, 2, 3] }] };
const floats = (data: readonly (number | null)[]) => ({ data, dtype: 'float32', shape: [data.length] });
const ids = (data: readonly number[]) => ({ data, dtype: 'int64', shape: [data.length] });

function pass(inputs: object, loss = 'cross_entropy', config?: object) {
  const data = [{ model_input: prompt, loss_fn_inputs: { target_tokens: ids([2, 3, 4]), ...inputs } }];
  const input = { data, loss_fn: loss, ...(config === undefined ? {} : { loss_fn_config: config }) };
  return decodePassJson({ model_id: 'm', seq_id: 1, forward_input: input }, { forwardOnly: true }).operation();
}

describe('sequence numbers', () => {
  it('beyond 2^53 are kept to the last digit', () => {
    const body = parseExactJson(
      `{"seq_id": 999999999000000001, "sampling_session_id":"s", "prompt":${JSON.stringify(prompt)}, "sampling_params":{"max_tokens":4}}`,
    );
    expect(decodeSampleRequest(body).sequenceNumber).toBe('999999999000000001');
  });

  it('text with strings that never end is refused in one pass', () => {
    const started = performance.now();
    expect(() => parseExactJson(`1234567890123456${'"\\"'.repeat(1_000_000)}`)).toThrow();
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  it('leave long fractions and digits in texts alone', () => {
    expect(
      parseExactJson('{"a":0.12345678901234567,"b":"x 12345678901234567","c":-1e22,"d":[12345678901234567]}'),
    ).toEqual({
      a: Number('0.12345678901234567'),
      b: 'x 12345678901234567',
      c: -1e22,
      d: ['12345678901234567'],
    });
  });
});

describe('datums', () => {
  it('may leave weights out, and give whole numbers for advantages', () => {
    expect(pass({}).data[0]!.weights).toBeUndefined();
    const inputs = { logprobs: floats([-1, -1, -1]), advantages: ids([0, 1, 0]) };
    expect(pass(inputs, 'importance_sampling').data[0]!.advantages!.data).toEqual(Float32Array.of(0, 1, 0));
  });

  it('take several targets a position, sparse as dense', () => {
    const dense = { data: [2, 0, 3, 9, 4, 0], dtype: 'int64', shape: [3, 2] };
    const sparse = {
      data: [2, 3, 9, 4],
      dtype: 'int64',
      shape: [3, 2],
      sparse_crow_indices: [0, 1, 3, 4],
      sparse_col_indices: [0, 0, 1, 0],
    };
    const weights = { data: [1, 0, 0.5, 0.5, 1, 0], dtype: 'float32', shape: [3, 2] };
    const of = (target_tokens: object) => pass({ target_tokens, weights }).data[0]!.targetTokens;
    expect(of(sparse)).toEqual(of(dense));
    expect(of(dense)).toMatchObject({ shape: [3, 2] });
  });

  it.each([
    ['an unknown input', { mask: floats([1, 1, 1]) }, 'cross_entropy', /mask/],
    ['a missing one', {}, 'ppo', /advantages/],
    ['a short one', { weights: floats([1, 1]) }, 'cross_entropy', /shape \[3\]/],
    ['a number that is none', { weights: floats([1, null, 1]) }, 'cross_entropy', /weights\.data\[1\]/],
    ['an index outside of its shape', sparseWith({ sparse_col_indices: [5] }), 'cross_entropy', /indices/],
    ['negative targets', { target_tokens: ids([2, -100, 4]) }, 'cross_entropy', /target_tokens\.data\[1\]/],
  ])('are refused for %s', (_, inputs, loss, message) => {
    expect(() => pass(inputs, loss)).toThrow(message);
  });

  function sparseWith(change: object) {
    const tensor = { data: [1], dtype: 'float32', shape: [3, 1], sparse_crow_indices: [0, 1, 1, 1] };
    return { weights: { ...tensor, ...change } };
  }

  it('are refused for images', () => {
    const message = toBinary(
      ForwardBackwardRequestSchema,
      create(ForwardBackwardRequestSchema, {
        modelId: 'm',
        seqId: 1,
        lossFn: 'cross_entropy',
        data: [
          { modelInput: [{ chunk: { case: 'image', value: { data: bytesOf(Int32Array.of(1)), format: 'png' } } }] },
        ],
      }),
    );
    expect(decodePassProto(message).operation).toThrow(/read text only/);
  });
});

describe('losses', () => {
  const inputs = { logprobs: floats([-1, -1, -1]), advantages: floats([1, 1, 1]) };
  it.each([
    ['ppo', undefined, { name: 'ppo', clipLowThreshold: 0.8, clipHighThreshold: 1.2 }],
    ['cispo', undefined, { name: 'cispo', clipLowThreshold: 0, clipHighThreshold: 4 }],
    ['cispo', { clip_high_threshold: 1.2 }, { name: 'cispo', clipLowThreshold: 0, clipHighThreshold: 1.2 }],
    ['dro', undefined, { name: 'dro', beta: 0.05 }],
  ])('%s with %j', (loss, config, expected) => {
    expect(pass(inputs, loss, config).loss).toEqual(expected);
  });

  it.each([
    ['stable_reinforce', undefined, /loss_fn=importance_sampling/],
    ['ppo', { epsilon: 0.2 }, /epsilon/],
    ['ppo', { clip_low_threshold: 'x' }, /clip_low_threshold/],
    ['cross_entropy', { beta: 1 }, /beta/],
  ])('%s with %j is refused', (loss, config, message) => {
    expect(() => pass(loss === 'cross_entropy' ? {} : inputs, loss, config)).toThrow(message);
  });

  it('read texts and numbers of the newer map', () => {
    const message = (lossFnConfigV2: object) =>
      decodePassProto(
        toBinary(
          ForwardBackwardRequestSchema,
          create(ForwardBackwardRequestSchema, {
            ...{ modelId: 'm', seqId: 1, lossFn: 'dro', lossFnConfig: { beta: 1 } },
            lossFnConfigV2: lossFnConfigV2 as Record<string, { value: { case: 'number'; value: number } }>,
          }),
        ),
      ).operation;
    expect(message({ loss_id: { value: { case: 'text', value: 'x' } } })).toThrow(/loss_id/);
  });
});

describe('sampling', () => {
  const sample = (params: object, extra: object = {}) =>
    decodeSampleRequest({ sampling_session_id: 's', seq_id: 0, prompt, sampling_params: params, ...extra });

  it('fills in what is left out', () => {
    expect(sample({})).toEqual({
      ...{ samplerId: 's', sequenceNumber: '0', numSamples: 1, prompt: Int32Array.of(1, 2, 3) },
      params: { temperature: 1, topK: -1, topP: 1, stop: [], stopTokenIds: [] },
      ...{ promptLogprobs: false, topkPromptLogprobs: 0 },
    });
  });

  it.each([
    ['a text', '\n\nUser:', { stop: ['\n\nUser:'], stopTokenIds: [], ignoreEos: true }],
    ['nothing, not even an end of sequence', [], { stop: [], stopTokenIds: [], ignoreEos: true }],
    ['texts', ['a', 'b'], { stop: ['a', 'b'], stopTokenIds: [] }],
    ['ids', [7, 8], { stop: [], stopTokenIds: [7, 8] }],
  ])('stops at %s', (_, stop, expected) => {
    expect(sample({ stop }).params).toMatchObject(expected);
  });

  it('may score named tokens along the prompt, dense or sparse', () => {
    const dense = { data: [2, -1, 3, 9], dtype: 'int64', shape: [2, 2] };
    const sparse = { ...dense, data: [2, 3, 9], sparse_crow_indices: [0, 1, 3], sparse_col_indices: [0, 0, 1] };
    const of = (target_prompt_logprobs: object) => sample({}, { target_prompt_logprobs }).promptTargets;
    expect(of(dense)).toEqual({ dtype: 'int32', shape: [2, 2], data: Int32Array.of(2, -1, 3, 9) });
    expect(of(sparse)).toEqual(of(dense));
    expect(() => of({ ...dense, data: [1] })).toThrow(/target_prompt_logprobs/);
  });

  it('folds seeds of 64 bits, and switches top_k 0 off', () => {
    expect(sample({ seed: '18446744073709551615', top_k: 0 }).params).toMatchObject({ seed: 2 ** 32 - 1, topK: -1 });
  });

  it('takes members that are switched off, and refuses what is not offered', () => {
    expect(() => sample({}, { prompt_alt_tokens_k: 0, record_stability_info: false })).not.toThrow();
    expect(() => sample({}, { prompt_alt_tokens_k: 2 })).toThrow(/prompt_alt_tokens_k/);
  });
});

describe('steps', () => {
  it('have the defaults of this wire', () => {
    expect(decodeAdam({})).toEqual({
      ...{ learningRate: 1e-4, beta1: 0.9, beta2: 0.95, eps: 1e-12, weightDecay: 0, gradClipNorm: 0 },
      loraPlusLrRatio: 1,
    });
  });

  it('take a learning rate of 0, and refuse other optimizers', () => {
    expect(decodeAdam({ adam_params: { learning_rate: 0 } }).learningRate).toBe(0);
    expect(() => decodeAdam({ optimizer_params: { type: 'dimuon' } })).toThrow(/adamw/);
    expect(() => decodeAdam({ adam_params: { beta1: 1 } })).toThrow(/beta1/);
  });
});

describe('models', () => {
  const body = { session_id: 's', model_seq_id: 0, base_model: 'b' };
  it('adapt every linear layer unless told otherwise, at an alpha of 32', () => {
    expect(decodeNewModel(body).training).toEqual({
      ...{ type: 'lora', rank: 32, alpha: 32 },
      targetModules: ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj', 'lm_head'],
    });
    const lora = { rank: 8, train_mlp: false, train_unembed: false };
    expect(decodeNewModel({ ...body, lora_config: lora }).training).toMatchObject({
      rank: 8,
      targetModules: ['q_proj', 'k_proj', 'v_proj', 'o_proj'],
    });
  });

  it.each([
    [{ lora_config: { rank: 0 } }, /rank/],
    [{ lora_config: { train_mlp: false, train_attn: false, train_unembed: false } }, /at least one/],
    [{ optimizer_config: { type: 'dimuon', version: 1 } }, /adamw/],
    [{ base_model: '' }, /base_model/],
  ])('%j is refused', (change, message) => {
    expect(() => decodeNewModel({ ...body, ...change })).toThrow(message);
  });
});

describe('names and paths', () => {
  it.each(['a.b', '000020', 'final', 'x_Y-9'])('a save may be called %s', (name) => {
    expect(saveNameAt(name, 'path')).toBe(name);
  });

  it.each(['../x', '', '..', 'a/b', 'a b', 'x'.repeat(256)])('a save may not be called %j', (name) => {
    expect(() => saveNameAt(name, 'path')).toThrow(/path/);
  });

  it('have three parts', () => {
    const id = `${'0'.repeat(8)}-0000-0000-0000-${'0'.repeat(12)}:train:3`;
    expect(parseSavePath(`tinker://${id}/sampler_weights/a`, 'path')).toEqual({
      modelId: id,
      kind: 'sampler_weights',
      name: 'a',
    });
    expect(parseModelId(id).number).toBe(3);
    expect(() => parseSavePath('tinker://a/b', 'path')).toThrow(/tinker:/);
    expect(() => parseSavePath('tinker://a/b/c', 'path')).toThrow(/weights/);
    expect(() => parseModelId('no-such-model')).toThrow(/model_id/);
  });

  it('a save without a name is called by its number, but for weights to sample from', () => {
    const save = { model_id: 'm', seq_id: 4 };
    expect(decodeSave(save, 'weights').name).toBe('checkpoint-4');
    expect(decodeSave(save, 'sampler_weights').name).toBeUndefined();
    expect(() => decodeSave({ ...save, kind: 'inflight' }, 'sampler_weights')).toThrow(/snapshot/);
    expect(() => decodeSave({ ...save, age_encryption_recipients: ['age1'] }, 'external_weights')).toThrow(/age/);
  });

  it('a load makes a model where it names none', () => {
    const path = 'tinker://run/weights/a';
    expect(decodeLoad({ model_id: 'm', seq_id: 1, path, optimizer: true })).toMatchObject({
      type: 'load',
      optimizer: true,
    });
    expect(decodeLoad({ session_id: 's', model_seq_id: 2, path })).toMatchObject({
      type: 'create',
      number: 2,
      optimizer: false,
    });
  });
});
