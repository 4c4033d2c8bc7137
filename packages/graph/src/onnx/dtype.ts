/** ONNX numbers of the dtypes (onnx.proto, TensorProto.DataType). */
import type { DType } from '../graph.js';

export const onnxDType = { float32: 1, int64: 7, bool: 9 } as const satisfies Record<DType, number>;
