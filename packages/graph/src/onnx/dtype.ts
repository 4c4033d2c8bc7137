/** ONNX numbers of the dtypes (onnx.proto, TensorProto.DataType), and their widths in files. */
import type { DType } from '../graph.js';

export const onnxDType = { float32: 1, int8: 3, int64: 7, bool: 9 } as const satisfies Record<DType, number>;

/** Of numbers that lowered nodes hand to each other: no value of a program has it. */
export const onnxUint8 = 2;

export const bytesPerNumber = { float32: 4, int8: 1, int64: 8, bool: 1 } as const satisfies Record<DType, number>;
