/** Datums of this wire, complete and checked: inputs for each token of the model input, targets shifted by the caller. */
import {
  complaint,
  type Datum,
  type FloatTensor,
  floatTensor,
  idTensor,
  type LossName,
  losses,
  type TensorShape,
} from '@loopwright/protocol';
import { type RawTensor, readFloats, readIds } from '../tensor-data.js';
import { lossInputKeys } from './loss.js';

export interface RawDatum {
  readonly modelInput: Int32Array;
  /** By their names on the wire. */
  readonly inputs: Readonly<Record<string, RawTensor>>;
  /** Path for errors, such as `data[3]`. */
  readonly field: string;
}

/**
 * Weights may be left out, and then are 1. Targets of `cross_entropy` may be several for each position.
 *
 * @throws `invalid_argument` naming the input and position that is missing, unknown, of another shape or not finite
 */
export function buildDatum({ modelInput, inputs, field }: RawDatum, loss: LossName): Datum {
  const at = (key: string) => `${field}.loss_fn_inputs.${key}`;
  const known: readonly string[] = Object.values(lossInputKeys);
  const unknown = Object.keys(inputs).find((key) => !known.includes(key));
  if (unknown !== undefined) {
    throw complaint({
      field: at(unknown.slice(0, 64)),
      expected: `one of ${known.join(', ')}`,
      got: 'an unknown input',
      remedy: 'leave it out; a mask is written as weights or advantages of 0',
    });
  }
  const needed = (key: string, read: (tensor: RawTensor) => { readonly shape: TensorShape }) => {
    if (inputs[key] !== undefined) return read(inputs[key]);
    throw complaint({
      field: at(key),
      expected: `a tensor of ${modelInput.length} values`,
      got: 'nothing',
      remedy: `${loss} needs it`,
    });
  };
  needed(lossInputKeys.targetTokens, readIds);
  const target = readIds(inputs[lossInputKeys.targetTokens]!); // there, as was just seen
  const width = loss === 'cross_entropy' ? (target.shape[1] ?? 1) : 1;
  const shape: TensorShape = width === 1 ? [modelInput.length] : [modelInput.length, width];
  expectShape(target.shape, shape, at(lossInputKeys.targetTokens));
  const floats = (key: string, wanted: TensorShape): FloatTensor | undefined => {
    if (inputs[key] === undefined) return undefined;
    const { data, shape: found } = readFloats(inputs[key]);
    expectShape(found, wanted, at(key));
    return floatTensor(data, wanted);
  };
  const weights = floats(lossInputKeys.weights, shape);
  const rest: { advantages?: FloatTensor; logprobs?: FloatTensor } = {};
  const required: readonly string[] = losses[loss].required;
  for (const name of ['advantages', 'logprobs'] as const) {
    const tensor = floats(lossInputKeys[name], [modelInput.length]);
    if (!required.includes(name)) continue; // checked like the others and then left out
    if (tensor === undefined) needed(lossInputKeys[name], readFloats);
    else rest[name] = tensor;
  }
  return {
    modelInput,
    targetTokens: idTensor(target.data, target.shape),
    ...(weights === undefined ? {} : { weights }),
    ...rest,
  };
}

function expectShape(shape: TensorShape, expected: TensorShape, field: string): void {
  if (shape[0] === expected[0] && (shape[1] ?? 1) === (expected[1] ?? 1)) return;
  throw complaint({
    field,
    expected: `shape [${expected.join(',')}], a row for each token of the model input`,
    got: `shape [${shape.join(',')}]`,
  });
}
