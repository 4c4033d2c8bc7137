/** Messages as the SDK writes and reads them: bytes that it serialised, and bytes that it decodes to the same values. */
import { fromBinary } from '@bufbuild/protobuf';
import type { PassResult, SampleResult } from '@loopwright/protocol';
import { describe, expect, it } from 'vitest';
import { decodePassProto, encodePassJson, encodePassProto } from './forward-backward.js';
import { encodeSampleJson, encodeSampleProto } from './sampling.js';
import { ForwardBackwardOutputSchema } from './tinker_pb.js';

const bytes = (hex: string) => Uint8Array.from(Buffer.from(hex, 'hex'));
const hex = (message: Uint8Array) => Buffer.from(message).toString('hex');

const crossEntropy =
  '0a016d10011a640a100a0e0a0c01000000020000000300000012300a0d7461726765745f746f6b656e73121f0a180200000000000000030000000000000004000000000000001802220103121e0a077765696768747312130a0c000000000000803f0000803f1801220103220d63726f73735f656e74726f7079';
const ppoWithoutData = '0a016d1002220370706f2a1d0a12636c69705f6c6f775f7468726573686f6c64119a9999999999e93f3001';

describe('a pass that the SDK sends', () => {
  it('is read with its tensors', () => {
    const { modelId, sequenceNumber, operation } = decodePassProto(bytes(crossEntropy));
    expect({ modelId, sequenceNumber }).toEqual({ modelId: 'm', sequenceNumber: 1 });
    expect(operation()).toEqual({
      type: 'forward-backward',
      loss: { name: 'cross_entropy' },
      data: [
        {
          modelInput: Int32Array.of(1, 2, 3),
          targetTokens: { dtype: 'int32', shape: [3], data: Int32Array.of(2, 3, 4) },
          weights: { dtype: 'float32', shape: [3], data: Float32Array.of(0, 1, 1) },
        },
      ],
    });
  });

  it('is read from any place in a buffer, as Node hands bodies over', () => {
    const padded = Buffer.concat([Buffer.from([9, 9, 9]), bytes(crossEntropy)]).subarray(3);
    expect(decodePassProto(padded).operation().data[0]!.modelInput).toEqual(Int32Array.of(1, 2, 3));
  });

  it('keeps its place when its content is refused', () => {
    const { sequenceNumber, operation } = decodePassProto(bytes(ppoWithoutData));
    expect(sequenceNumber).toBe(2);
    expect(operation).toThrow(/at least one datum/);
  });

  it('is refused when it is no message', () => {
    expect(() => decodePassProto(bytes('fffe'))).toThrow(/ForwardBackwardRequest/);
  });
});

describe('the result of a pass', () => {
  const result: PassResult = {
    outputs: [
      { logprobs: Float32Array.of(-1, -2), loss: 3 },
      { logprobs: Float32Array.of(-3), loss: 3 },
    ],
    lossSum: 6,
    metrics: { 'ratio/mean': 1, 'actor/pg_clipfrac': Number.NaN },
    trainingTokens: 3,
  };

  it('is what the SDK decodes: a record for each datum, metrics that say how chunks are put together', () => {
    const decoded = fromBinary(ForwardBackwardOutputSchema, encodePassProto(result, { lengths: [2, 1] }));
    expect(decoded.lossFnOutputType).toBe('TorchLossReturn');
    expect(decoded.metrics).toEqual({ 'loss:sum': 6, 'num_tokens:sum': 3, 'ratio/mean:mean': 1 });
    expect(
      decoded.lossFnOutputs.map(({ fields, numDatums }) => ({ hex: hex(fields.logprobs!.data), numDatums })),
    ).toEqual([
      { hex: '000080bf000000c0', numDatums: 1n },
      { hex: '000040c0', numDatums: 1n },
    ]);
    expect(encodePassJson(result, { lengths: [2, 1] })).toEqual({
      loss_fn_output_type: 'TorchLossReturn',
      loss_fn_outputs: [
        { logprobs: { data: [-1, -2], dtype: 'float32', shape: [2] } },
        { logprobs: { data: [-3], dtype: 'float32', shape: [1] } },
      ],
      metrics: { 'loss:sum': 6, 'num_tokens:sum': 3, 'ratio/mean:mean': 1 },
    });
  });

  it('has a column for each of several targets', () => {
    const wide = { ...result, outputs: [{ logprobs: Float32Array.of(-1, -2, -3, -4), loss: 10 }] };
    expect(encodePassJson(wide, { lengths: [2] })).toMatchObject({
      loss_fn_outputs: [{ logprobs: { shape: [2, 2] } }],
    });
  });
});

it('a sample is the very bytes that the SDK was seen to read', () => {
  const result: SampleResult = {
    sequences: [{ tokens: Int32Array.of(5, 6), logprobs: Float32Array.of(-0.5, -0.25), stopReason: 'length' }],
    promptLogprobs: Float32Array.of(Number.NaN, -1),
    topkPromptLogprobs: [
      [],
      [
        { tokenId: 7, logprob: -0.5 },
        { tokenId: 8, logprob: -1 },
      ],
    ],
    prefillTokens: 2,
  };
  expect(hex(encodeSampleProto(result))).toBe(
    '0a160801120805000000060000001a08000000bf000080be12080000c07f000080bf1a280a10000000000000000007000000080000001210804fc3c7804fc3c7000000bf000080bf18022002',
  );
  expect(encodeSampleJson(result)).toEqual({
    type: 'sample',
    sequences: [{ stop_reason: 'length', tokens: [5, 6], logprobs: [-0.5, -0.25] }],
    prompt_logprobs: [null, -1],
    topk_prompt_logprobs: [
      null,
      [
        [7, -0.5],
        [8, -1],
      ],
    ],
  });
});
