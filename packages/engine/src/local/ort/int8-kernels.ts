/** Whether sampling can be computed in a precision here: bytes have to be multiplied exactly. */
import { cpus } from 'node:os';
import { compile, Graph, int8MatMul } from '@loopwright/graph';
import { complaint } from '@loopwright/protocol';
import type { Device } from '../../devices.js';
import type { SamplerPrecision } from '../../precision.js';
import { Compiled, floats, loadRuntime, TensorFactory } from './runtime.js';

/** @throws `invalid_argument` for int8 on another device than the processor; `unsupported_host` where its kernels are not exact */
export async function requirePrecision(precision: SamplerPrecision, device: Device): Promise<void> {
  if (precision === 'float32') return;
  if (device !== 'cpu') {
    throw complaint({
      field: 'samplerPrecision',
      expected: `float32 on ${device}`,
      got: precision,
      remedy: 'int8 is for the processor: leave the device or the precision out',
    });
  }
  await requireExactInt8();
}

/** Rows [rows, inner] of whole numbers by a weight [inner, columns] of such. */
export interface Int8Product {
  readonly rows: readonly (readonly number[])[];
  readonly weight: readonly (readonly number[])[];
}

const [inner, columns] = [96, 80] as const;
/** Few and many: kernels differ by the number of rows. */
const rowCounts = [2, 13];

/** Rows and columns of largest magnitudes, whose products leave 16 bits two by two, and all others. */
function testProduct(count: number): Int8Product {
  const number = (i: number, j: number) => ((i * 7919 + j * 104_729 + i * j * 31) % 255) - 127;
  return {
    rows: Array.from({ length: count }, (_, n) =>
      Array.from({ length: inner }, (_, k) => (n % 2 === 0 || k === 0 ? 127 : number(n, k))),
    ),
    weight: Array.from({ length: inner }, (_, k) =>
      Array.from({ length: columns }, (_, m) => (m % 3 === 0 ? 127 : m % 3 === 1 ? -127 : number(k, m))),
    ),
  };
}

/**
 * Multiplies bytes whose sums leave 16 bits, and compares with whole numbers: some processors cut such sums off, and what they gave would be
 * wrong without a sign of it.
 *
 * @throws `unsupported_host`
 */
export async function requireExactInt8(multiply: (product: Int8Product) => Promise<ArrayLike<number>> = byRuntime) {
  for (const count of rowCounts) {
    const product = testProduct(count);
    const found = await multiply(product);
    const expected = product.rows.flatMap((row) =>
      Array.from({ length: columns }, (_, m) => row.reduce((sum, value, k) => sum + value * product.weight[k]![m]!, 0)),
    );
    if (expected.every((sum, i) => Math.round(found[i]!) === sum)) continue;
    throw complaint({
      code: 'unsupported_host',
      field: 'samplerPrecision',
      expected: 'for int8, a processor that adds up products of bytes in 32 bits (x86-64 with VNNI, arm64)',
      got: `${cpus()[0]?.model.trim() || process.arch}, where sums are cut off`,
      remedy: 'leave samplerPrecision (serve --sampler-precision) out, to sample in float32',
    });
  }
}

async function byRuntime({ rows, weight }: Int8Product): Promise<Float32Array> {
  const graph = new Graph();
  const rounded = graph.constant(Int8Array.from(weight.flat()), [inner, columns]);
  const scale = graph.constant(new Float32Array(columns).fill(1), [columns]);
  const y = int8MatMul(graph.input('x', 'float32', ['N', inner]), rounded, scale);
  await using program = await Compiled.load(compile(graph, { y }), { threads: 1 });
  const x = new TensorFactory(await loadRuntime()).float(Float32Array.from(rows.flat()), [rows.length, inner]);
  return floats(await program.run({ x }, ['y']), 'y');
}
