/** Datums: from the wire or from a caller's arrays into complete, checked typed arrays, and back onto the wire. */
import {
  complaint,
  type Datum,
  type FloatTensor,
  floatTensor,
  idTensor,
  type LossInputName,
  type LossName,
  losses,
  type TensorShape,
} from '@loopwright/protocol';
import { arrayAt, describeValue, objectAt, refuseOtherKeys, showKey } from '../checks.js';
import { type RawTensor, rawTensor, readFloats, readIds, type WireTensor } from '../tensor-data.js';
import { lossInputKeys, type Spelling, spellInput } from './loss.js';

const inputNames = Object.keys(lossInputKeys) as readonly LossInputName[]; // true: the keys of that table
type RawInputs = Partial<Record<LossInputName, RawTensor>>;

/** Where a datum came from, for its errors. */
interface Origin {
  readonly loss: LossName;
  /** Path of the datum, such as `operationConfig.forward.datumList[3]`. */
  readonly field: string;
  readonly spelling: Spelling;
}

function shapeText(shape: TensorShape): string {
  return shape.length === 1 ? `${shape[0]} values` : `shape [${shape.join(',')}]`;
}

/** @throws `invalid_argument` naming the tensor when its shape is not the one that the model input asks for */
function expectShape(shape: TensorShape, expected: TensorShape, field: string, why: string): void {
  if (shape[0] !== expected[0] || (shape[1] ?? 1) !== (expected[1] ?? 1)) {
    throw complaint({ field, expected: `${shapeText(expected)}, ${why}`, got: shapeText(shape) });
  }
}

function buildDatum(modelInput: Int32Array, inputs: RawInputs, { loss, field, spelling }: Origin): Datum {
  const { required, optional } = losses[loss];
  const pathOf = (name: LossInputName) => `${field}.lossFnInputs.${spellInput(name, spelling)}`;
  for (const name of required) {
    if (inputs[name] !== undefined) continue;
    const all = required.map((key) => spellInput(key, spelling)).join(', ');
    throw complaint({
      field: pathOf(name),
      expected: `a tensor of ${modelInput.length} values`,
      got: 'nothing',
      remedy: `lossFnName ${loss} needs ${all}`,
    });
  }
  const perToken: TensorShape = [modelInput.length];
  const asInput = `as many as modelInput has tokens`;

  const target = readIds(inputs.targetTokens!); // required by every loss
  const width = loss === 'cross_entropy' ? (target.shape[1] ?? 1) : 1;
  const targetShape: TensorShape = width === 1 ? perToken : [modelInput.length, width];
  expectShape(target.shape, targetShape, pathOf('targetTokens'), asInput);

  const weights = inputs.weights === undefined ? undefined : readFloats(inputs.weights);
  if (weights !== undefined) expectShape(weights.shape, targetShape, pathOf('weights'), 'as target tokens');
  const isMasked = (index: number) => weights?.data[index] === 0;

  const tensor = (name: 'advantages' | 'logprobs' | 'refLogProb' | 'temperature'): FloatTensor | undefined => {
    const raw = inputs[name];
    if (raw === undefined) return undefined;
    const { data, shape } = name === 'logprobs' || name === 'refLogProb' ? readFloats(raw, isMasked) : readFloats(raw);
    if (name === 'temperature') {
      const bad = data.findIndex((value) => value <= 0);
      if (bad >= 0)
        throw complaint({ field: `${raw.field}.data[${bad}]`, expected: 'a number above 0', got: String(data[bad]) });
      if (data.length === 1) return floatTensor(new Float32Array(modelInput.length).fill(data[0]!));
    }
    expectShape(shape, perToken, pathOf(name), asInput);
    return floatTensor(data);
  };
  const floats = {
    advantages: tensor('advantages'),
    logprobs: tensor('logprobs'),
    refLogProb: tensor('refLogProb'),
    temperature: tensor('temperature'),
  };
  // Inputs that the loss doesn't read are checked like the others and then left out.
  const used: readonly LossInputName[] = [...required, ...optional];
  const keep = (name: keyof typeof floats) => {
    const value = floats[name];
    return value !== undefined && used.includes(name) ? { [name]: value } : {};
  };
  return {
    modelInput,
    targetTokens: idTensor(target.data, target.shape),
    ...(weights === undefined ? {} : { weights: floatTensor(weights.data, weights.shape) }),
    ...keep('advantages'),
    ...keep('logprobs'),
    ...keep('refLogProb'),
    ...keep('temperature'),
  };
}

/**
 * Token ids of a wire ModelInput, its chunks joined.
 *
 * @throws `invalid_argument` naming the chunk or the position
 */
export function decodeModelInput(value: unknown, field: string): Int32Array {
  const input = objectAt(value, field);
  refuseOtherKeys(input, ['chunks'], field);
  const parts = arrayAt(input.chunks, `${field}.chunks`, { min: 1 }).map((chunk, index) => {
    const at = `${field}.chunks[${index}]`;
    const { type, tokens } = objectAt(chunk, at);
    refuseOtherKeys(chunk as object as Record<string, unknown>, ['type', 'tokens'], at); // an object, checked above
    if (type !== 'encoded_text') {
      throw complaint({
        field: `${at}.type`,
        expected: '`encoded_text`',
        got: typeof type === 'string' ? showKey(type) : describeValue(type),
      });
    }
    return readTokens(tokens, `${at}.tokens`);
  });
  if (parts.length === 1) return parts[0]!;
  const joined = new Int32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    joined.set(part, offset);
    offset += part.length;
  }
  return joined;
}

/** One or more token ids from an array or typed array. */
export function readTokens(value: unknown, field: string): Int32Array {
  const isList = Array.isArray(value) || ArrayBuffer.isView(value);
  const { data, shape } = isList ? readIds({ data: value, field }) : { data: new Int32Array(0), shape: [0] };
  if (data.length === 0 || shape.length !== 1) {
    throw complaint({ field, expected: 'at least one token id', got: describeValue(value) });
  }
  return data;
}

/**
 * A datum of the wire.
 *
 * @throws `invalid_argument` naming the key, tensor or position that is wrong
 */
export function decodeDatum(value: unknown, field: string, loss: LossName): Datum {
  const datum = objectAt(value, field);
  refuseOtherKeys(datum, ['modelInput', 'lossFnInputs'], field);
  const modelInput = decodeModelInput(datum.modelInput, `${field}.modelInput`);
  const at = `${field}.lossFnInputs`;
  const given = datum.lossFnInputs === undefined || datum.lossFnInputs === null ? {} : objectAt(datum.lossFnInputs, at);
  refuseOtherKeys(given, Object.values(lossInputKeys), at);
  const inputs: RawInputs = {};
  for (const name of inputNames) {
    const key = lossInputKeys[name];
    if (given[key] !== undefined && given[key] !== null) inputs[name] = rawTensor(given[key], `${at}.${key}`);
  }
  return buildDatum(modelInput, inputs, { loss, field, spelling: 'wire' });
}

/**
 * A datum as a caller of the TypeScript client writes it (a `DatumFor` of the loss).
 *
 * @param field path that errors name, such as `data[3]`
 * @throws `invalid_argument` naming the key, tensor or position that is wrong
 */
export function datumFromInputs(value: unknown, field: string, loss: LossName): Datum {
  const datum = objectAt(value, field);
  const modelInput = readTokens(datum.modelInput, `${field}.modelInput`);
  const at = `${field}.lossFnInputs`;
  const given = objectAt(datum.lossFnInputs, at);
  const used: readonly LossInputName[] = [...losses[loss].required, ...losses[loss].optional];
  refuseOtherKeys(given, used, at);
  const inputs: RawInputs = {};
  for (const name of inputNames) {
    const data = given[name];
    if (data !== undefined) inputs[name] = { data, field: `${at}.${name}` };
  }
  return buildDatum(modelInput, inputs, { loss, field, spelling: 'local' });
}

export interface WireModelInput {
  readonly chunks: readonly [{ readonly type: 'encoded_text'; readonly tokens: readonly number[] }];
}

export function encodeModelInput(tokens: Int32Array): WireModelInput {
  return { chunks: [{ type: 'encoded_text', tokens: Array.from(tokens) }] };
}

export interface WireDatum {
  readonly modelInput: WireModelInput;
  readonly lossFnInputs: Readonly<Record<string, WireTensor>>;
}

export function encodeDatum(datum: Datum): WireDatum {
  const lossFnInputs: Record<string, WireTensor> = {};
  for (const name of inputNames) {
    const tensor = datum[name];
    if (tensor === undefined) continue;
    const dtype = tensor.dtype === 'int32' ? 'int64' : 'float32';
    lossFnInputs[lossInputKeys[name]] = { data: Array.from(tensor.data), dtype, shape: tensor.shape };
  }
  return { modelInput: encodeModelInput(datum.modelInput), lossFnInputs };
}

/** Tokens of all model inputs: what a pass is metered by. */
export function countTokens(data: readonly Datum[]): number {
  return data.reduce((sum, datum) => sum + datum.modelInput.length, 0);
}
