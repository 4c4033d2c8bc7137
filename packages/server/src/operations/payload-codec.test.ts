import { floatTensor, idTensor, type Operation, type PassResult } from '@loopwright/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeContainer, encodeContainer } from './container.js';
import { decodeOperation, decodeResult, encodeOperation, encodeResult } from './payload-codec.js';

const pass: Operation = {
  type: 'forward-backward',
  data: [
    {
      modelInput: Int32Array.of(1, 2, 3),
      targetTokens: idTensor(Int32Array.of(2, 3, 4, 5, 6, 7), [3, 2]),
      weights: floatTensor(Float32Array.of(0, 1, 0.1, 1, 1, 1), [3, 2]),
    },
  ],
  loss: { name: 'ppo', clipLowThreshold: 0.8, clipHighThreshold: 1.2 },
};

describe('the stored form of operations', () => {
  it('gives an operation back with its arrays, shapes and bits', () => {
    expect(decodeOperation(encodeOperation(pass))).toEqual(pass);
  });

  it('gives a result back with NaN and infinities where they were', () => {
    const result: PassResult = {
      outputs: [{ logprobs: Float32Array.of(Number.NaN, -1, -0), loss: Number.POSITIVE_INFINITY }],
      lossSum: Number.NaN,
      metrics: { $odd: -0, 'loss/mean': Number.NEGATIVE_INFINITY, $$both: 1 },
      trainingTokens: 3,
    };
    expect(decodeResult('forward', encodeResult('forward', result))).toEqual(result);
  });

  it('writes equal operations as equal bytes and different ones as different bytes', () => {
    expect(encodeOperation({ ...pass })).toEqual(encodeOperation(pass));
    expect(encodeOperation({ ...pass, type: 'forward' })).not.toEqual(encodeOperation(pass));
  });

  it('has a layout that does not drift', () => {
    const bytes = encodeContainer({ a: Int32Array.of(7), b: [1, 'x'] });
    expect(Buffer.from(bytes).toString('latin1')).toBe(
      'LWOP\x01\0\0\0\x5b\0\0\0\0\0\0\0{"value":{"a":{"$array":0},"b":[1,"x"]},"arrays":[{"dtype":"int32","offset":0,"length":1}]}\0\0\0\0\0\x07\0\0\0\0\0\0\0',
    );
  });

  it('refuses a result where an operation is expected, and the result of another type', () => {
    const bytes = encodeResult('load-state', {});
    expect(() => decodeOperation(bytes)).toThrow('expected operation');
    expect(() => decodeResult('forward', bytes)).toThrow('expected result forward');
  });

  it('refuses a container of another version', () => {
    const bytes = encodeOperation(pass);
    bytes[4] = 2;
    expect(() => decodeOperation(bytes)).toThrow('its version is 2');
  });

  it('reads an unaligned part of a bigger buffer', () => {
    const bytes = encodeOperation(pass);
    const shifted = new Uint8Array(bytes.byteLength + 3);
    shifted.set(bytes, 3);
    expect(decodeOperation(shifted.subarray(3))).toEqual(pass);
  });

  it('refuses every cut of a container instead of reading past its end', () => {
    const bytes = encodeOperation(pass);
    for (let length = 0; length < bytes.byteLength; length++) {
      expect(() => decodeOperation(bytes.subarray(0, length)), `length ${length}`).toThrow();
    }
  });

  it('gives any plain data back', () => {
    const { tie } = fc.letrec((recurse) => ({
      tie: fc.oneof(
        { depthSize: 'small' },
        fc.string(),
        fc.double(),
        fc.boolean(),
        fc.constant(null),
        fc.float32Array(),
        fc.int32Array(),
        fc.array(recurse('tie')),
        fc.dictionary(
          fc.string().filter((key) => key !== '__proto__'),
          recurse('tie'),
          { noNullPrototype: true },
        ),
      ),
    }));
    fc.assert(
      fc.property(tie, (value) => {
        expect(decodeContainer(encodeContainer({ value }))).toEqual({ value });
      }),
    );
  });
});
