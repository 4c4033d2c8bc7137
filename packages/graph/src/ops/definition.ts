/** What an operation is: a shape rule, a gradient and a lowering, in one file with its doc. */
import type { Attributes, DType, Value, ValueType } from '../graph.js';
import type { Lowering } from '../onnx/lowering.js';
import { show } from '../shape.js';

export interface GradientContext {
  readonly inputs: readonly Value[];
  readonly outputs: readonly Value[];
  readonly attributes: Attributes;
  /** Gradient of the loss by each output; undefined where none reaches it. */
  readonly grads: readonly (Value | undefined)[];
  /** Which inputs the caller needs gradients of. */
  readonly needs: readonly boolean[];
}

/** Gradients by input; undefined where it is not needed or zero. A gradient may have the broadcast shape: it is summed down by the caller. */
export type Gradient = (context: GradientContext) => readonly (Value | undefined)[];

export interface OpDefinition {
  /** Checks the inputs and tells the outputs. Throws a sentence that names the operation and the shapes. */
  readonly infer: (inputs: readonly ValueType[], attributes: Attributes) => readonly ValueType[];
  /**
   * `'none'` where the derivative is zero or taken as zero (comparisons, ids, casts, StopGradient); `'missing'` where there is one that
   * nobody has written yet: `gradients` throws when it meets that, so that no part of a gradient is lost silently.
   */
  readonly gradient: Gradient | 'none' | 'missing';
  /** Emits ONNX nodes. */
  readonly lower: (lowering: Lowering) => void;
}

/** The gradient by the first output. Throws where another output has one: it would be lost. */
export function onlyGrad(grads: readonly (Value | undefined)[], op = 'operation'): Value {
  const [grad, ...others] = grads;
  if (grad === undefined || others.some((other) => other !== undefined)) {
    throw new Error(`${op}: only its first output can be differentiated`);
  }
  return grad;
}

export function at<T>(list: readonly T[], index: number): T {
  const item = list[index];
  if (item === undefined) throw new Error(`operand ${index} is missing`);
  return item;
}

/** Throws unless an operand has the dtype that the operation needs. */
export function requireDtype(op: string, operand: string, { dtype, shape }: ValueType, expected: DType): void {
  if (dtype !== expected) throw new Error(`${op}: ${operand} must be ${expected}, got ${dtype} ${show(shape)}`);
}
