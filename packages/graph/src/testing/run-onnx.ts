/** Runs a lowered program on the runtime that the engine uses, on the CPU. */
import { InferenceSession, Tensor as OrtTensor } from 'onnxruntime-node';
import type { LoweredProgram } from '../onnx/lowering.js';
import { sizeOf, type Tensor } from './tensor.js';

function toOrt({ dtype, shape, data }: Tensor): OrtTensor {
  if (dtype === 'float32') return new OrtTensor('float32', Float32Array.from(data), shape);
  if (dtype === 'int64') return new OrtTensor('int64', BigInt64Array.from(Array.from(data, BigInt)), shape);
  if (dtype === 'int8') return new OrtTensor('int8', Int8Array.from(data), shape);
  return new OrtTensor('bool', Uint8Array.from(data), shape);
}

function fromOrt({ type, dims, data }: OrtTensor): Tensor {
  if (type !== 'float32' && type !== 'int64' && type !== 'bool') throw new Error(`the model returned ${type}`);
  const values = data as ArrayLike<number | bigint>; // true of the arrays of these three types
  return { dtype: type, shape: dims, data: Float64Array.from({ length: sizeOf(dims) }, (_, i) => Number(values[i])) };
}

/** Feeds a model's bytes (or the path of its file) and returns all outputs. */
export async function runOnnx(
  model: LoweredProgram | string,
  feeds: Readonly<Record<string, Tensor>>,
): Promise<Record<string, Tensor>> {
  const options: InferenceSession.SessionOptions = { intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 3 };
  const session = await (typeof model === 'string'
    ? InferenceSession.create(model, options)
    : InferenceSession.create(model.bytes, options));
  try {
    const inputs = Object.fromEntries(session.inputNames.map((name) => [name, toOrt(feeds[name]!)]));
    const outputs = await session.run(inputs);
    return Object.fromEntries(Object.entries(outputs).map(([name, tensor]) => [name, fromOrt(tensor)]));
  } finally {
    await session.release();
  }
}
