/**
 * MatMul: α · op(A) · op(B), where op may swap the last two axes. Leading axes broadcast; a 2-D right side serves all of them.
 * C = A·B: dA = dC·Bᵀ, dB = Aᵀ·dC (summed over leading axes where B has none), and so on with the swaps. One kernel, FusedMatMul, does it all.
 */
import type { Attributes, Value } from '../graph.js';
import { broadcast, dim, product, type Shape, show } from '../shape.js';
import { at, type OpDefinition, onlyGrad, requireDtype } from './definition.js';
import { reshape } from './reshape.js';

export interface MatMulOptions {
  readonly transposeA?: boolean;
  readonly transposeB?: boolean;
  /** Factor on the product; 1 by default. */
  readonly alpha?: number;
}

const inner = (shape: Shape, swapped: boolean): readonly [Shape[number], Shape[number]] =>
  swapped ? [dim(shape, -1), dim(shape, -2)] : [dim(shape, -2), dim(shape, -1)];

function flatten(value: Value): Value {
  return value.shape.length === 2 ? value : reshape(value, [product(value.shape.slice(0, -1)), dim(value.shape, -1)]);
}

export const MatMul: OpDefinition = {
  infer: (inputs, attributes) => {
    const [a, b] = [at(inputs, 0), at(inputs, 1)];
    requireDtype('MatMul', 'the left side', a, 'float32');
    requireDtype('MatMul', 'the right side', b, 'float32');
    if (a.shape.length < 2 || b.shape.length < 2)
      throw new Error(`MatMul: needs two axes at least: ${show(a.shape)} x ${show(b.shape)}`);
    const [m, k] = inner(a.shape, attributes.transposeA === true);
    const [k2, n] = inner(b.shape, attributes.transposeB === true);
    if (k !== k2) {
      throw new Error(
        `MatMul: inner sizes differ: ${show(a.shape)} x ${show(b.shape)} (transposeA ${attributes.transposeA ?? false}, transposeB ${attributes.transposeB ?? false})`,
      );
    }
    return [{ dtype: 'float32', shape: [...broadcast('MatMul', a.shape.slice(0, -2), b.shape.slice(0, -2)), m, n] }];
  },
  gradient: ({ inputs, attributes, grads, needs }) => {
    const [a, b] = [at(inputs, 0), at(inputs, 1)];
    const grad = onlyGrad(grads);
    const [ta, tb, alpha] = [
      attributes.transposeA === true,
      attributes.transposeB === true,
      Number(attributes.alpha ?? 1),
    ];
    const byA = !needs[0]
      ? undefined
      : ta
        ? matMul(b, grad, { transposeA: tb, transposeB: true, alpha })
        : matMul(grad, b, { transposeB: !tb, alpha });
    if (!needs[1]) return [byA, undefined];
    // A shared right side under rows that lie in order: one flat product adds up all leading axes, without an array per leading index.
    if (b.shape.length === 2 && a.shape.length > 2 && !ta) {
      const [a2, g2] = [flatten(a), flatten(grad)];
      return [byA, tb ? matMul(g2, a2, { transposeA: true, alpha }) : matMul(a2, g2, { transposeA: true, alpha })];
    }
    return [
      byA,
      tb ? matMul(grad, a, { transposeA: true, transposeB: ta, alpha }) : matMul(a, grad, { transposeA: !ta, alpha }),
    ];
  },
  lower: (to) => {
    const { transposeA, transposeB, alpha } = to.attributes;
    if (transposeA !== true && transposeB !== true && (alpha ?? 1) === 1) {
      to.emit('MatMul', to.inputs, to.outputs);
      return;
    }
    to.emit(
      'FusedMatMul',
      to.inputs,
      to.outputs,
      {
        transA: { int: transposeA ? 1 : 0 },
        transB: { int: transposeB ? 1 : 0 },
        alpha: { float: Number(alpha ?? 1) },
      },
      'com.microsoft',
    );
  },
};

export function matMul(
  a: Value,
  b: Value,
  { transposeA = false, transposeB = false, alpha = 1 }: MatMulOptions = {},
): Value {
  const attributes: Attributes = {
    ...(transposeA ? { transposeA } : {}),
    ...(transposeB ? { transposeB } : {}),
    ...(alpha === 1 ? {} : { alpha }),
  };
  return a.graph.apply('MatMul', [a, b], attributes)[0]!;
}
