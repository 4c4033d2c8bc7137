import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { LoopwrightError } from '@loopwright/protocol';
import { mixedGgufFile, rejection, temporaryDirectory } from '@loopwright/testkit';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GgufFile } from './gguf-file.js';
import { ggufLimits, NeedsMoreBytes, parseGgufHeader, valueTypes } from './header.js';

const whole = new Uint8Array(readFileSync(mixedGgufFile()));

/** Bytes of a head, put together by hand. */
function head(...parts: readonly (readonly number[] | string)[]): Uint8Array {
  return Uint8Array.from(parts.flatMap((part) => (typeof part === 'string' ? text(part) : part)));
}
const u32 = (value: number) => [...new Uint8Array(Uint32Array.of(value).buffer)];
const u64 = (value: bigint | number) => [...new Uint8Array(BigUint64Array.of(BigInt(value)).buffer)];
const text = (value: string) => [...u64(value.length), ...Buffer.from(value, 'latin1')];
const magic = [...Buffer.from('GGUF')];
const start = (tensors: bigint | number, keys: bigint | number) => [...magic, ...u32(3), ...u64(tensors), ...u64(keys)];
const tensor = (
  name: string,
  dims: readonly (bigint | number)[],
  { type = 0, offset = 0n as bigint | number } = {},
) => [...text(name), ...u32(dims.length), ...dims.flatMap(u64), ...u32(type), ...u64(offset)];

function refusal(bytes: Uint8Array, fileBytes = bytes.length): LoopwrightError {
  try {
    parseGgufHeader(bytes, { path: '/models/m.gguf', fileBytes });
  } catch (error) {
    if (LoopwrightError.isInstance(error)) return error;
    throw error;
  }
  throw new Error('expected a refusal');
}

describe('the head of a GGUF file', () => {
  it('tells metadata and tensors', () => {
    const { version, metadata, tensors } = parseGgufHeader(whole, { path: 'm.gguf', fileBytes: whole.length });
    expect(version).toBe(3);
    expect(metadata.get('general.architecture')).toBe('llama');
    // What was meant by the float32 nearest to it.
    expect(metadata.get('llama.attention.layer_norm_rms_epsilon')).toBe(1e-5);
    expect(tensors.get('blk.0.ffn_down.weight')).toMatchObject({
      type: 'Q4_0',
      shape: [64, 128],
      sizeBytes: (64 * 128 * 18) / 32,
    });
    expect(tensors.size).toBe(21);
  });

  it('reads values of every type', () => {
    const view = (bytes: number, write: (view: DataView) => void) => {
      const buffer = new DataView(new ArrayBuffer(bytes));
      write(buffer);
      return [...new Uint8Array(buffer.buffer)];
    };
    const pairs: [string, number, number[], unknown][] = [
      ['a', valueTypes.uint8, [200], 200],
      ['b', valueTypes.int8, [200], -56],
      ['c', valueTypes.uint16, [1, 255], 65_281],
      ['d', valueTypes.int16, [1, 255], -255],
      ['e', valueTypes.int32, u32(2 ** 32 - 2), -2],
      ['f', valueTypes.float32, view(4, (v) => v.setFloat32(0, 0.1, true)), 0.1],
      ['g', valueTypes.bool, [1], true],
      ['h', valueTypes.uint64, u64(2n ** 40n), 2 ** 40],
      ['i', valueTypes.int64, view(8, (v) => v.setBigInt64(0, -3n, true)), -3],
      ['j', valueTypes.float64, view(8, (v) => v.setFloat64(0, 1 / 3, true)), 1 / 3],
      ['k', valueTypes.array, [...u32(valueTypes.string), ...u64(2), ...text('x'), ...text('')], ['x', '']],
    ];
    const bytes = head(start(0, pairs.length), ...pairs.flatMap(([key, type, value]) => [text(key), u32(type), value]));
    const { metadata } = parseGgufHeader(bytes, { path: 'm.gguf', fileBytes: bytes.length });
    expect([...metadata]).toEqual(pairs.map(([key, , , value]) => [key, value]));
  });

  it('asks for more where the bytes at hand end before it does', () => {
    const parse = () => parseGgufHeader(whole.subarray(0, 1000), { path: 'm.gguf', fileBytes: whole.length });
    expect(parse).toThrow(NeedsMoreBytes);
  });

  const key = (name: string, type: number, ...value: number[][]) => [...text(name), ...u32(type), ...value.flat()];
  it.each<[string, Uint8Array, string]>([
    ['another magic', head([...Buffer.from('GGML')], u32(3), u64(0), u64(0)), 'magic'],
    ['version 1', head(magic, u32(1), u64(0), u64(0)), 'version'],
    ['a big-endian file', head(magic, [0, 0, 0, 3], u64(0), u64(0)), 'version'],
    ['too many tensors', head(start(ggufLimits.tensors + 1, 0)), 'tensor_count'],
    ['too many keys', head(start(0, 2n ** 63n)), 'metadata_kv_count'],
    ['a key given twice', head(start(0, 2), key('a', 7, [1]), key('a', 7, [1])), 'a'],
    ['a key that is too long', head(start(0, 1), u64(1025)), 'metadata key 0, length'],
    ['text that is too long', head(start(0, 1), key('a', 8, u64(2n ** 40n))), 'a, length'],
    ['text that is not UTF-8', head(start(0, 1), key('a', 8, u64(1), [255])), 'a'],
    ['a value of an unknown type', head(start(0, 1), key('a', 13)), 'a, type'],
    ['a list of lists', head(start(0, 1), key('a', 9, u32(9), u64(1))), 'a, element type'],
    ['a list that is too long', head(start(0, 1), key('a', 9, u32(0), u64(4_000_001))), 'a, length'],
    ['five dimensions', head(start(1, 0), tensor('t', [1, 1, 1, 1, 1])), 't, n_dims'],
    ['no dimension', head(start(1, 0), tensor('t', [])), 't, n_dims'],
    ['an empty dimension', head(start(1, 0), tensor('t', [4, 0])), 't, dims'],
    ['sizes beyond counting', head(start(1, 0), tensor('t', [2n ** 40n, 2n ** 40n])), 't, dims'],
    ['rows that are no whole blocks', head(start(1, 0), tensor('t', [31], { type: 8 })), 't, dims'],
    ['an offset that is not aligned', head(start(1, 0), tensor('t', [1], { offset: 4 })), 't, offset'],
    ['an alignment of 0', head(start(0, 1), key('general.alignment', 4, u32(0))), 'general.alignment'],
    ['an alignment that is no number', head(start(0, 1), key('general.alignment', 8, text('x'))), 'general.alignment'],
  ])('with %s is refused by name', (_, bytes, field) => {
    expect(refusal(bytes, 10_000)).toMatchObject({ code: 'model_invalid', details: { field: `m.gguf: ${field}` } });
  });

  it('refuses tensors that overlap, and names given twice', () => {
    const bytes = (second: number[]) => head(start(2, 0), tensor('a', [16]), second);
    expect(refusal(bytes(tensor('b', [8], { offset: 32 })), 10_000)).toMatchObject({
      details: { field: 'm.gguf: b, offset', got: expect.stringContaining('overlap') },
    });
    expect(refusal(bytes(tensor('a', [8], { offset: 64 })), 10_000)).toMatchObject({ details: { got: 'twice' } });
  });

  it('refuses a type that it cannot read by the name of the type', () => {
    expect(refusal(head(start(1, 0), tensor('t', [256], { type: 12 })), 10_000)).toMatchObject({
      code: 'unsupported_model',
      details: { field: 'm.gguf: t, type', got: 'Q4_K', expected: expect.stringContaining('Q8_0') },
    });
  });

  it('refuses lengths that the file cannot hold, before it makes anything of that size', () => {
    const list = head(start(0, 1), key('a', 9, u32(12), u64(4_000_000)));
    expect(refusal(list)).toMatchObject({ code: 'model_invalid', details: { field: '/models/m.gguf: a' } });
    const weights = head(start(1, 0), tensor('t', [2n ** 20n, 2n ** 20n]));
    expect(refusal(weights)).toMatchObject({ message: expect.stringContaining('the file was cut short') });
  });
});

describe('a damaged GGUF file', () => {
  it.each([3, 20, 24, 1000, 9000, whole.length - 1])('cut at %i bytes is called cut', async (length) => {
    await using directory = await temporaryDirectory();
    const file = path.join(directory.path, 'cut.gguf');
    await writeFile(file, whole.subarray(0, length));
    expect(await rejection(GgufFile.open(file))).toMatchObject({
      code: 'model_invalid',
      details: { remedy: 'the file was cut short; copy or download it again' },
    });
  });

  it('is refused with one of two codes or read, whichever bytes are changed', () => {
    const headBytes = 9500;
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(headBytes), fc.nat(255)), { minLength: 1, maxLength: 8 }), (changes) => {
        const bytes = whole.slice();
        for (const [at, value] of changes) bytes[at] = value;
        try {
          parseGgufHeader(bytes, { path: 'm.gguf', fileBytes: bytes.length });
        } catch (error) {
          expect(LoopwrightError.isInstance(error) && error.code).toMatch(/^(model_invalid|unsupported_model)$/);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('that is a folder, or not there, is refused', async () => {
    await using directory = await temporaryDirectory();
    expect(await rejection(GgufFile.open(directory.path))).toMatchObject({ code: 'model_invalid' });
    expect(await rejection(GgufFile.open(path.join(directory.path, 'none.gguf')))).toMatchObject({
      code: 'model_invalid',
    });
  });
});
