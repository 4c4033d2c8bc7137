/** The weights that sampling programs hold as constants: float32 or, as factors of products, rounded to int8. */
import { basename } from 'node:path';
import { type Graph, int8MatMul, matMul, type Value } from '@loopwright/graph';
import type { Int8WeightsFile } from '../../formats/int8-weights-file.js';
import type { WeightsFile } from '../../formats/weights-file.js';

export interface SamplingFiles {
  readonly file: WeightsFile;
  /** The factors of products once more, rounded; undefined where products are of float32. Lies beside the other file. */
  readonly int8?: Int8WeightsFile | undefined;
}

export interface Constants {
  /** As float32. */
  weight(name: string): Value;
  /** The [out, in] of a weight that is a factor. */
  widths(name: string): readonly [number, number];
  /** x [rows, in] by such a weight, [rows, out]. */
  product(x: Value, name: string): Value;
}

export function constantsOf(graph: Graph, { file, int8 }: SamplingFiles): Constants {
  const values = new Map<string, Value>();
  const place = (name: string) => {
    const found = file.tensors.get(name);
    if (found === undefined) throw new Error(`the weights file has no ${name}`);
    return found;
  };
  const weight = (name: string): Value => {
    const value = values.get(name) ?? graph.externalConstant(name, { ...place(name), file: basename(file.path) });
    values.set(name, value);
    return value;
  };
  return {
    weight,
    widths: (name) => {
      const [out, inner] = place(name).shape;
      return [out!, inner!]; // factors have two axes
    },
    product: (x, name) => {
      if (int8 === undefined) return matMul(x, weight(name), { transposeB: true });
      const rounded = int8.tensors.get(name);
      if (rounded === undefined) throw new Error(`the rounded weights have no ${name}`);
      const of = basename(int8.path);
      return int8MatMul(
        x,
        graph.externalConstant(name, { dtype: 'int8', ...rounded.values, file: of }),
        graph.externalConstant(`${name} scales`, { ...rounded.scales, file: of }),
      );
    },
  };
}
