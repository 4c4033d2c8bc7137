/** Whether the tensors of a file are those of the model that its config describes. */
import { complaint, type LoopwrightError } from '@loopwright/protocol';
import { firstNonFinite, sameShape, showShape } from './numbers.js';

export interface NamedShape {
  readonly name: string;
  readonly shape: readonly number[];
}

/**
 * Checks that every tensor is there, with its shape, and no others.
 *
 * @param found by name
 * @param where the file of a tensor, for messages
 * @param isIgnored tensors beyond the model's that follow from its config
 * @throws `model_invalid`, naming file and tensor
 */
export function checkTensors(
  expected: readonly NamedShape[],
  {
    of,
    found,
    where,
    isIgnored,
  }: {
    readonly of: string;
    readonly found: ReadonlyMap<string, NamedShape>;
    readonly where: (name: string) => string;
    readonly isIgnored: (name: string) => boolean;
  },
): void {
  for (const { name, shape } of expected) {
    const info = found.get(name);
    if (info === undefined) throw missingTensor('model', name);
    if (sameShape(info.shape, shape)) continue;
    throw complaint({
      code: 'model_invalid',
      field: `${where(name)}: ${name}`,
      expected: `shape ${showShape(shape)}`,
      got: showShape(info.shape),
      remedy: 'check that the config belongs to these weights',
    });
  }
  // A tensor that nothing reads would make a model that differs from the one that was saved, silently.
  const known = new Set(expected.map(({ name }) => name));
  for (const name of found.keys()) {
    if (known.has(name) || isIgnored(name)) continue;
    throw complaint({
      code: 'model_invalid',
      field: `${where(name)}: ${JSON.stringify(name.slice(0, 120))}`,
      expected: `only tensors of ${of} with this config`,
      got: 'a tensor with no place in it',
      remedy: 'check the architecture and the bias settings in the config',
    });
  }
}

export function missingTensor(where: string, name: string): LoopwrightError {
  const remedy =
    name === 'lm_head.weight'
      ? 'download the model again, or set tie_word_embeddings in config.json if it shares the embedding'
      : 'check that the config belongs to these weights, or download the model again';
  return complaint({
    code: 'model_invalid',
    field: `${where}: ${name.slice(0, 120)}`,
    expected: 'a tensor of this name',
    got: 'none',
    remedy,
  });
}

/** @throws `model_invalid` for NaN or infinity, with the position */
export function requireFinite(values: Float32Array, field: string): void {
  const bad = firstNonFinite(values);
  if (bad < 0) return;
  throw complaint({
    code: 'model_invalid',
    field,
    expected: 'finite values',
    got: `${values[bad]} at position ${bad} of ${values.length}`,
    remedy: 'the weights are damaged; download or save them again',
  });
}
