import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LoopwrightError } from '@loopwright/protocol';
import { fixturePath, rejection, temporaryDirectory, tinyModelDirectory } from '@loopwright/testkit';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  parseSafetensorsHeader,
  readSafetensors,
  SafetensorsFile,
  safetensorsLimits,
  writeSafetensors,
} from './safetensors.js';

/** A file made by hand from a header and bytes, without the writer under test. */
function fileBytes(header: unknown, data: Uint8Array = new Uint8Array(0)): Uint8Array {
  const json = new TextEncoder().encode(typeof header === 'string' ? header : JSON.stringify(header));
  const bytes = new Uint8Array(8 + json.length + data.length);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(json.length), true);
  bytes.set(json, 8);
  bytes.set(data, 8 + json.length);
  return bytes;
}

function entry(dtype: string, shape: readonly number[], start: number, end: number): unknown {
  return { dtype, shape, data_offsets: [start, end] };
}

async function openBytes(directory: string, bytes: Uint8Array): Promise<SafetensorsFile> {
  const path = join(directory, 'model.safetensors');
  await writeFile(path, bytes);
  return SafetensorsFile.open(path);
}

describe('reading', () => {
  it('reads each dtype that has a float32 or int32 value', async () => {
    await using directory = await temporaryDirectory();
    const data = new Uint8Array(8 + 8 + 4 + 4 + 16 + 8);
    const view = new DataView(data.buffer);
    view.setFloat64(0, Math.PI, true);
    view.setFloat32(8, 1.5, true);
    view.setFloat32(12, -2, true);
    view.setUint16(16, 0x3c00, true);
    view.setUint16(18, 0xc400, true);
    view.setUint16(20, 0x3fc0, true);
    view.setUint16(22, 0xbf80, true);
    view.setBigInt64(24, -7n, true);
    view.setBigInt64(32, 2147483647n, true);
    view.setInt32(40, -2147483648, true);
    view.setInt32(44, 5, true);
    const bytes = fileBytes(
      {
        double: entry('F64', [1], 0, 8),
        single: entry('F32', [2, 1], 8, 16),
        half: entry('F16', [2], 16, 20),
        brain: entry('BF16', [1, 2], 20, 24),
        wide: entry('I64', [2], 24, 40),
        narrow: entry('I32', [2], 40, 48),
        scalar: entry('F32', [0], 48, 48),
      },
      data,
    );
    await using file = await openBytes(directory.path, bytes);
    expect([...(await file.readFloat32('double'))]).toEqual([Math.fround(Math.PI)]);
    expect([...(await file.readFloat32('single'))]).toEqual([1.5, -2]);
    expect([...(await file.readFloat32('half'))]).toEqual([1, -4]);
    expect([...(await file.readFloat32('brain'))]).toEqual([1.5, -1]);
    expect([...(await file.readInt32('wide'))]).toEqual([-7, 2147483647]);
    expect([...(await file.readInt32('narrow'))]).toEqual([-2147483648, 5]);
    expect((await file.readFloat32('scalar')).length).toBe(0);
    expect(file.info('brain').shape).toEqual([1, 2]);
    expect(await rejection(file.readFloat32('wide'))).toMatchObject({ code: 'model_invalid', details: { got: 'I64' } });
    expect(await rejection(file.readInt32('half'))).toMatchObject({ code: 'model_invalid', details: { got: 'F16' } });
    expect(await rejection(file.readFloat32('absent'))).toMatchObject({ code: 'model_invalid' });
  });

  it('widens half-precision values in place into a slice of a larger array and touches nothing beside it', async () => {
    await using directory = await temporaryDirectory();
    const halves = Uint16Array.from({ length: 1001 }, (_, i) => 0x3f80 + i);
    const bytes = fileBytes({ a: entry('BF16', [1001], 0, 2002) }, new Uint8Array(halves.buffer));
    await using file = await openBytes(directory.path, bytes);
    const whole = new Float32Array(1003).fill(7);
    const into = whole.subarray(1, 1002);
    expect(await file.readFloat32('a', { into })).toBe(into);
    const expected = new Float32Array(Uint32Array.from(halves, (bits) => bits << 16).buffer);
    expect(into).toEqual(expected);
    expect([whole[0], whole[1002]]).toEqual([7, 7]);
    expect(await rejection(file.readFloat32('a', { into: whole }))).toMatchObject({ code: 'invalid_argument' });
  });

  it('refuses an int64 that does not fit 32 bits, and reading after disposal', async () => {
    await using directory = await temporaryDirectory();
    const wide = new BigInt64Array([1n, 2n ** 31n]);
    const file = await openBytes(
      directory.path,
      fileBytes({ ids: entry('I64', [2], 0, 16) }, new Uint8Array(wide.buffer)),
    );
    expect(await rejection(file.readInt32('ids'))).toMatchObject({
      code: 'model_invalid',
      details: { got: '2147483648' },
    });
    await file[Symbol.asyncDispose]();
    await file[Symbol.asyncDispose]();
    expect(await rejection(file.readInt32('ids'))).toMatchObject({ code: 'disposed' });
  });

  it('reads what the reference implementation wrote', async () => {
    await using file = await SafetensorsFile.open(fixturePath('tiny/llama-tied/expected.safetensors'));
    const ids = await file.readInt32('seq0.input_ids');
    expect([...ids]).toEqual([39, 259, 235, 122, 16]);
    expect((await file.readFloat32('seq0.logprobs'))[0]).toBe(Math.fround(-9.447920799255371));
    expect(file.metadata.format).toBe('pt');
  });

  it('names a missing file and a directory in its place', async () => {
    await using directory = await temporaryDirectory();
    expect(await rejection(SafetensorsFile.open(join(directory.path, 'none.safetensors')))).toMatchObject({
      code: 'model_invalid',
      details: { got: 'no such file' },
    });
    expect(await rejection(SafetensorsFile.open(directory.path))).toMatchObject({ code: 'model_invalid' });
  });
});

describe('hostile headers', () => {
  const limits = safetensorsLimits;
  const cases: readonly [string, unknown, Uint8Array?][] = [
    ['text that is not JSON', '{"a":'],
    ['a list', []],
    ['an entry that is no object', { a: 3 }],
    ['an unknown dtype', { a: entry('Q4', [1], 0, 4) }, new Uint8Array(4)],
    ['a dtype named like a property of every object', { a: entry('constructor', [1], 0, 4) }, new Uint8Array(4)],
    ['a negative size', { a: entry('F32', [-1], 0, 4) }, new Uint8Array(4)],
    ['a fractional size', { a: entry('F32', [0.5], 0, 2) }, new Uint8Array(2)],
    ['sizes whose product is beyond exact numbers', { a: entry('F32', [2 ** 40, 2 ** 40], 0, 4) }, new Uint8Array(4)],
    ['too many dimensions', { a: entry('F32', Array(limits.dimensions + 1).fill(1), 0, 4) }, new Uint8Array(4)],
    ['a shape that disagrees with the offsets', { a: entry('F32', [2], 0, 4) }, new Uint8Array(4)],
    ['offsets in the wrong order', { a: entry('F32', [0], 4, 0) }, new Uint8Array(4)],
    ['one offset', { a: { dtype: 'F32', shape: [1], data_offsets: [0] } }, new Uint8Array(4)],
    ['an overlap', { a: entry('F32', [2], 0, 8), b: entry('F32', [1], 4, 8) }, new Uint8Array(8)],
    ['a gap', { a: entry('F32', [1], 0, 4), b: entry('F32', [1], 8, 12) }, new Uint8Array(12)],
    ['bytes after the last tensor', { a: entry('F32', [1], 0, 4) }, new Uint8Array(5)],
    ['a name that is too long', { ['n'.repeat(limits.nameLength + 1)]: entry('F32', [1], 0, 4) }, new Uint8Array(4)],
    ['metadata that is no text', { __metadata__: { a: 1 } }],
    ['nesting of a million levels', '['.repeat(1_000_000)],
  ];
  it.each(cases)('refuses %s', async (_, header, data) => {
    await using directory = await temporaryDirectory();
    const error = await rejection(openBytes(directory.path, fileBytes(header, data)));
    expect(error).toMatchObject({ code: 'model_invalid' });
  });

  it('refuses a header length above the limit and one above the file, without reading on', async () => {
    await using directory = await temporaryDirectory();
    const bytes = fileBytes({});
    const view = new DataView(bytes.buffer);
    view.setBigUint64(0, 2n ** 63n, true);
    expect(await rejection(openBytes(directory.path, bytes))).toMatchObject({
      code: 'model_invalid',
      details: { expected: 'at most 100000000 bytes' },
    });
    view.setBigUint64(0, 90_000_000n, true);
    expect(await rejection(openBytes(directory.path, bytes))).toMatchObject({
      code: 'model_invalid',
      details: { expected: '90000008 bytes', got: '10 bytes' },
    });
  });

  it('refuses more tensors than the limit', () => {
    const many: Record<string, unknown> = {};
    for (let i = 0; i <= limits.tensors; i++) many[`t${i}`] = entry('F32', [0], 0, 0);
    const header = new TextEncoder().encode(JSON.stringify(many));
    expect(() => parseSafetensorsHeader(header, { path: 'x', fileBytes: 8 + header.length })).toThrow(
      /at most 100000 tensors/,
    );
  });

  it('keeps a tensor named __proto__ as a name among others', async () => {
    await using directory = await temporaryDirectory();
    const header = '{"__proto__":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}';
    await using file = await openBytes(directory.path, fileBytes(header, new Uint8Array(4)));
    expect([...file.tensors.keys()]).toEqual(['__proto__']);
  });

  it('shows control characters of a name escaped', async () => {
    await using directory = await temporaryDirectory();
    const error = await rejection(openBytes(directory.path, fileBytes({ '\u001b[31mred': 3 })));
    expect(LoopwrightError.isInstance(error) && error.message).not.toContain('\u001b');
  });
});

describe('damaged files', () => {
  it('names file, tensor, expected and actual bytes for a cut in the values', async () => {
    await using directory = await temporaryDirectory();
    const whole = await readFile(join(tinyModelDirectory('llama-tied'), 'model.safetensors'));
    const error = await rejection(openBytes(directory.path, whole.subarray(0, 200_000)));
    expect(error).toMatchObject({
      code: 'model_invalid',
      message: expect.stringMatching(
        /^model\.safetensors: .* tensor model\.layers\.\S+, got 200000 bytes; the file was cut short/,
      ),
      details: { got: '200000 bytes', remedy: expect.stringContaining('again') },
    });
  });

  it('answers a cut at any place with model_invalid', async () => {
    await using directory = await temporaryDirectory();
    const whole = await readFile(join(tinyModelDirectory('llama-tied'), 'model.safetensors'));
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: whole.length - 1 }), async (length) => {
        const error = await rejection(openBytes(directory.path, whole.subarray(0, length)));
        expect(error).toMatchObject({ code: 'model_invalid' });
      }),
      { numRuns: 60, examples: [[0], [7], [8], [9], [whole.length - 1]] },
    );
  });

  it('opens a file with changed header bytes or refuses it; a tensor it lists always fits the file', async () => {
    await using directory = await temporaryDirectory();
    const whole = await readFile(fixturePath('lora/llama-tied-qv-r4/adapter/adapter_model.safetensors'));
    const headerEnd = 8 + Number(whole.readBigUInt64LE(0));
    const change = fc.tuple(fc.integer({ min: 0, max: headerEnd - 1 }), fc.integer({ min: 0, max: 255 }));
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 6 }), async (changes) => {
        const bytes = Uint8Array.from(whole);
        for (const [at, value] of changes) bytes[at] = value;
        try {
          await using file = await openBytes(directory.path, bytes);
          for (const { name, offset, sizeBytes, dtype } of file.tensors.values()) {
            expect(offset + sizeBytes).toBeLessThanOrEqual(bytes.length);
            if (dtype === 'F32') await file.readFloat32(name);
          }
        } catch (error) {
          expect(error).toMatchObject({ code: 'model_invalid' });
        }
      }),
      { numRuns: 300 },
    );
  });

  it('refuses or accepts arbitrary JSON headers, and never anything else', () => {
    const shape = fc.array(fc.oneof(fc.nat(4), fc.constant(2 ** 31), fc.constant(-1)), { maxLength: 4 });
    const value = fc.oneof(
      fc.record({
        dtype: fc.constantFrom('F32', 'F16', 'I64', 'X'),
        shape,
        data_offsets: fc.array(fc.nat(64), { maxLength: 3 }),
      }),
      fc.jsonValue(),
    );
    fc.assert(
      fc.property(fc.dictionary(fc.string(), value), fc.nat(128), (json, extra) => {
        const header = new TextEncoder().encode(JSON.stringify(json));
        try {
          parseSafetensorsHeader(header, { path: 'x', fileBytes: 8 + header.length + extra });
        } catch (error) {
          expect(LoopwrightError.isInstance(error) && error.code).toBe('model_invalid');
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('writing', () => {
  const values = new Float32Array([1, -2, 3.5, 0, 1e-40, 6]);

  it('gives back names, order, shapes, values and metadata', async () => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, 'out.safetensors');
    const tensors = [
      { name: 'z', shape: [2, 3], data: values },
      { name: 'a "quoted" name', shape: [1], data: async () => new Float32Array([9]) },
      { name: 'empty', shape: [0, 4], data: new Float32Array(0) },
    ];
    await writeSafetensors(path, tensors, { metadata: { step: '3' } });
    const read = await readSafetensors(path);
    expect([...read.keys()].sort()).toEqual(['a "quoted" name', 'empty', 'z']);
    expect(read.get('z')).toEqual({ name: 'z', shape: [2, 3], data: values });
    expect(read.get('a "quoted" name')?.data).toEqual(new Float32Array([9]));
    await using file = await SafetensorsFile.open(path);
    expect({ ...file.metadata }).toEqual({ format: 'pt', step: '3' });
    for (const { offset } of file.tensors.values()) expect(offset % 4).toBe(0);
  });

  it('round-trips any float32 bits', async () => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, 'bits.safetensors');
    await fc.assert(
      fc.asyncProperty(fc.uint32Array({ minLength: 1, maxLength: 40 }), async (bits) => {
        const data = new Float32Array(bits.slice().buffer);
        await writeSafetensors(path, [{ name: 'w', shape: [data.length], data }]);
        const back = (await readSafetensors(path)).get('w')!.data;
        expect(new Uint32Array(back.buffer)).toEqual(bits);
      }),
      { numRuns: 40 },
    );
  });

  it('refuses a repeated name and data that does not fill its shape, and leaves nothing', async () => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, 'out.safetensors');
    const twice = [
      { name: 'a', shape: [6], data: values },
      { name: 'a', shape: [6], data: values },
    ];
    expect(await rejection(writeSafetensors(path, twice))).toMatchObject({
      code: 'invalid_argument',
      details: { field: 'a' },
    });
    const short = [{ name: 'a', shape: [7], data: values }];
    expect(await rejection(writeSafetensors(path, short))).toMatchObject({
      code: 'invalid_argument',
      details: { got: '6' },
    });
    expect(await readdir(directory.path)).toEqual([]);
  });

  it('reports a full disk, removes what it had written and keeps the older file', async () => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, 'out.safetensors');
    await writeSafetensors(path, [{ name: 'old', shape: [6], data: values }]);
    let calls = 0;
    const made = ['new', 'newer'].map((name) => ({ name, shape: [6], data: async () => values }));
    const full = writeSafetensors(path, made, {
      writeBytes: async (handle, parts) => {
        if (++calls > 1) throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
        await handle.writev([...parts]);
      },
    });
    expect(await rejection(full)).toMatchObject({ code: 'disk_full', details: { field: path, got: 'ENOSPC' } });
    expect(await readdir(directory.path)).toEqual(['out.safetensors']);
    expect([...(await readSafetensors(path)).keys()]).toEqual(['old']);
  });

  it('stops when cancelled between tensors', async () => {
    await using directory = await temporaryDirectory();
    const abort = new AbortController();
    const stopped = writeSafetensors(
      join(directory.path, 'out.safetensors'),
      [
        {
          name: 'a',
          shape: [6],
          data: async () => {
            abort.abort();
            return values;
          },
        },
      ],
      { signal: abort.signal },
    );
    expect(await rejection(stopped)).toMatchObject({ code: 'cancelled' });
    expect(await readdir(directory.path)).toEqual([]);
  });

  it('lets two writers of one file finish, the file being whole whoever comes last', async () => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, 'out.safetensors');
    const write = (value: number) =>
      writeSafetensors(path, [{ name: 'w', shape: [999], data: new Float32Array(999).fill(value) }]);
    await Promise.all([write(1), write(2), write(3)]);
    const { data } = (await readSafetensors(path)).get('w')!;
    expect(new Set(data).size).toBe(1);
    expect((await stat(path)).size).toBeGreaterThan(999 * 4);
    expect(await readdir(directory.path)).toEqual(['out.safetensors']);
  });
});
