/** Checks of a pass's data against the model, before any work. */
import { complaint, type Datum, type FloatTensor, type LossSpec, losses, type TensorShape } from '@loopwright/protocol';
import type { ModelConfig } from '../models/config.js';

/**
 * Lengths within the context, ids within the vocabulary, inputs that the loss needs there and as long as the model input, and finite
 * wherever a weight lets them count.
 *
 * @throws `invalid_argument` naming datum, input and position; `context_length_exceeded`
 */
export function checkData(data: readonly Datum[], loss: LossSpec, config: ModelConfig): void {
  if (data.length === 0) {
    throw complaint({ field: 'data', expected: 'one datum at least', got: 'none', remedy: 'leave out empty calls' });
  }
  data.forEach((datum, row) => {
    checkDatum(datum, { loss, config, field: `data[${row}]` });
  });
}

function checkDatum(
  datum: Datum,
  { loss, config, field }: { loss: LossSpec; config: ModelConfig; field: string },
): void {
  const length = datum.modelInput.length;
  if (length === 0) throw complaint({ field: `${field}.modelInput`, expected: 'one token at least', got: 'none' });
  if (length > config.contextLength) {
    throw complaint({
      code: 'context_length_exceeded',
      field: `${field}.modelInput`,
      expected: `at most ${config.contextLength} tokens (the context of the model)`,
      got: `${length} tokens`,
      remedy: 'cut or split the sequence',
    });
  }
  const input = (name: string) => `${field}.lossFnInputs.${name}`;
  const { shape } = datum.targetTokens;
  const targets = shape[1] ?? 1;
  if (shape[0] !== length || targets < 1 || datum.targetTokens.data.length !== length * targets) {
    throw complaint({
      field: input('targetTokens'),
      expected: `${length} rows, one for each token of modelInput`,
      got: `shape [${shape.join(', ')}] with ${datum.targetTokens.data.length} values`,
    });
  }
  if (targets > 1 && loss.name !== 'cross_entropy') {
    throw complaint({
      field: input('targetTokens'),
      expected: `one target for each token, as ${loss.name} needs`,
      got: `${targets}`,
      remedy: 'only cross_entropy takes several',
    });
  }
  checkIds(datum.modelInput, `${field}.modelInput`, config.vocabSize);
  checkIds(datum.targetTokens.data, input('targetTokens'), config.vocabSize);

  const { weights } = datum;
  const all = () => true;
  const counts = (position: number) => weights === undefined || weights.data[position] !== 0;
  checkFloats(weights, { field: input('weights'), shape: datum.targetTokens.shape, where: all });
  const needed: readonly string[] = losses[loss.name].required;
  const used: readonly string[] = [...needed, ...losses[loss.name].optional];
  for (const name of ['advantages', 'logprobs', 'refLogProb'] as const) {
    const tensor = datum[name];
    if (tensor === undefined && needed.includes(name)) {
      const expected = `a tensor of ${length} values`;
      throw complaint({ field: input(name), expected, got: 'nothing', remedy: `the loss ${loss.name} needs it` });
    }
    if (used.includes(name)) checkFloats(tensor, { field: input(name), shape: [length], where: counts });
  }
  checkFloats(datum.temperature, { field: input('temperature'), shape: [length], where: all });
  const bad = datum.temperature?.data.findIndex((value) => value <= 0) ?? -1;
  if (bad >= 0) {
    const got = String(datum.temperature!.data[bad]);
    throw complaint({ field: `${input('temperature')}[${bad}]`, expected: 'a number above 0', got });
  }
}

function checkFloats(
  tensor: FloatTensor | undefined,
  { field, shape, where }: { field: string; shape: TensorShape; where: (position: number) => boolean },
): void {
  if (tensor === undefined) return;
  const length = shape[0] * (shape[1] ?? 1);
  const matches = tensor.shape[0] === shape[0] && (tensor.shape[1] ?? 1) === (shape[1] ?? 1);
  if (!matches || tensor.data.length !== length) {
    throw complaint({
      field,
      expected: `shape [${shape.join(', ')}]`,
      got: `shape [${tensor.shape.join(', ')}] with ${tensor.data.length} values`,
    });
  }
  const bad = tensor.data.findIndex((value, position) => !Number.isFinite(value) && where(position));
  if (bad >= 0)
    throw complaint({ field: `${field}[${bad}]`, expected: 'a finite number', got: String(tensor.data[bad]) });
}

/** @throws `invalid_argument` for an id outside the vocabulary */
export function checkIds(ids: Int32Array, field: string, vocabSize: number): void {
  const bad = ids.findIndex((id) => id < 0 || id >= vocabSize);
  if (bad < 0) return;
  throw complaint({
    field: `${field}[${bad}]`,
    expected: `a token id from 0 to ${vocabSize - 1}`,
    got: String(ids[bad]),
    remedy: 'use the tokenizer of this base model',
  });
}
