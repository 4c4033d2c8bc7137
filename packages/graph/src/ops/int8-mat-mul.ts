/**
 * Int8MatMul: x [..., K] times rounded weights [K, N], each column with its scale [N]: y ≈ x · (q · scale). Every row of x is divided by its
 * own largest magnitude and rounded to steps of 1/127, so that whole numbers are multiplied: their sums are exact, whatever
 * their order, and a row has the same bits beside any others. A row of zeros gives zeros.
 *
 * Wants kernels that add up products of 8 bits in 32: where they do it in 16, large sums are cut off (x86-64 without VNNI).
 */
import type { Value } from '../graph.js';
import { dim, sameShape, show } from '../shape.js';
import { at, type OpDefinition, requireDtype } from './definition.js';

/** Magnitudes of a rounded row, and the zero among its unsigned numbers. */
const steps = 127;
const zeroPoint = 128;

export const Int8MatMul: OpDefinition = {
  infer: (inputs) => {
    const [x, weight, scale] = [at(inputs, 0), at(inputs, 1), at(inputs, 2)];
    requireDtype('Int8MatMul', 'the left side', x, 'float32');
    requireDtype('Int8MatMul', 'the right side', weight, 'int8');
    requireDtype('Int8MatMul', 'the scale', scale, 'float32');
    const [inner, columns] = weight.shape;
    if (weight.shape.length !== 2 || x.shape.length < 2 || dim(x.shape, -1) !== inner)
      throw new Error(`Int8MatMul: needs rows [..,K] and weights [K,N]: ${show(x.shape)} x ${show(weight.shape)}`);
    if (columns === undefined || !sameShape(scale.shape, [columns]))
      throw new Error(`Int8MatMul: needs a scale a column of ${show(weight.shape)}, got ${show(scale.shape)}`);
    return [{ dtype: 'float32', shape: [...x.shape.slice(0, -1), columns] }];
  },
  gradient: 'missing',
  lower: (to) => {
    const [magnitudes, largest, unit, rounded, product] = to.temps(8);
    const [step, zero] = [to.floats([1 / steps]), to.byteScalar(zeroPoint)];
    to.emit('Abs', [to.input(0)], [magnitudes]);
    to.emit('ReduceMax', [magnitudes, to.ints([-1])], [largest], { keepdims: { int: 1 } });
    // In a row of zeros this is no number, for which some whole one is taken: it is multiplied by the magnitude, 0, again.
    to.emit('Div', [to.input(0), largest], [unit]);
    to.emit('QuantizeLinear', [unit, step, zero], [rounded]);
    const [weight, scale] = [to.input(1), to.input(2)];
    to.emit('MatMulIntegerToFloat', [rounded, weight, step, scale, zero], [product], {}, 'com.microsoft');
    to.emit('Mul', [product, largest], to.outputs);
  },
};

export function int8MatMul(x: Value, weight: Value, scale: Value): Value {
  return x.graph.apply('Int8MatMul', [x, weight, scale])[0]!;
}
