/**
 * RotaryEmbedding (arXiv:2104.09864) on [B, S, heads·d] with positions [B, S] and tables cos, sin [P, d/2]; halves are paired
 * (i, i + d/2) as in Llama. A rotation is orthogonal, so its gradient is the rotation by the opposite angle (`inverse`).
 */
import type { Value } from '../graph.js';
import { sameShape, show } from '../shape.js';
import { at, type OpDefinition, onlyGrad } from './definition.js';

export interface RotaryTables {
  /** int64 [B, S]. */
  readonly positions: Value;
  /** [P, d/2]. */
  readonly cos: Value;
  readonly sin: Value;
}

export const RotaryEmbedding: OpDefinition = {
  infer: (inputs, attributes) => {
    const [x, positions, cos, sin] = [at(inputs, 0), at(inputs, 1), at(inputs, 2), at(inputs, 3)];
    if (x.shape.length !== 3 || positions.shape.length !== 2 || positions.dtype !== 'int64') {
      throw new Error(
        `RotaryEmbedding: needs [B,S,heads*d] and int64 [B,S], got ${show(x.shape)} and ${show(positions.shape)}`,
      );
    }
    const width = x.shape[2];
    if (typeof width !== 'number' || width % (2 * Number(attributes.heads)) !== 0) {
      throw new Error(`RotaryEmbedding: ${show(x.shape)} does not divide into ${attributes.heads} heads of even size`);
    }
    const half = width / (2 * Number(attributes.heads));
    if (cos.shape.length !== 2 || cos.shape[1] !== half || !sameShape(cos.shape, sin.shape)) {
      throw new Error(
        `RotaryEmbedding: tables ${show(cos.shape)} and ${show(sin.shape)} must be [P,${half}] for ${attributes.heads} heads in ${show(x.shape)}`,
      );
    }
    return [{ dtype: 'float32', shape: x.shape }];
  },
  gradient: ({ inputs, attributes, grads, needs }) => {
    if (needs[2] || needs[3]) throw new Error('RotaryEmbedding: its tables are constants; no gradient by them');
    const [, positions, cos, sin] = inputs;
    const rotated = onlyGrad(grads).graph.apply('RotaryEmbedding', [onlyGrad(grads), positions!, cos!, sin!], {
      heads: Number(attributes.heads),
      inverse: attributes.inverse !== true,
    });
    return [rotated[0], undefined, undefined, undefined];
  },
  lower: (to) => {
    const sin =
      to.attributes.inverse === true
        ? to.shared(`negated ${to.input(3)}`, (name) => to.emit('Neg', [to.input(3)], [name]))
        : to.input(3);
    to.emit(
      'RotaryEmbedding',
      [to.input(0), to.input(1), to.input(2), sin],
      to.outputs,
      { num_heads: { int: Number(to.attributes.heads) } },
      'com.microsoft',
    );
  },
};

export function rotaryEmbedding(x: Value, heads: number, { positions, cos, sin }: RotaryTables): Value {
  return x.graph.apply('RotaryEmbedding', [x, positions, cos, sin], { heads })[0]!;
}
