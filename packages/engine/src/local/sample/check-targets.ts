/** Checks of the ids whose log-probabilities are wanted along a prompt. */
import { complaint, type IdTensor } from '@loopwright/protocol';
import type { ModelConfig } from '../models/config.js';

/** @throws `invalid_argument` for another number of rows than the prompt has tokens but the first, or an id outside the vocabulary */
export function checkPromptTargets(
  { shape, data }: IdTensor,
  promptTokens: number,
  { vocabSize }: Pick<ModelConfig, 'vocabSize'>,
): void {
  const [rows, width = 1] = shape;
  if (rows !== promptTokens - 1 || width < 1 || data.length !== rows * width) {
    throw complaint({
      field: 'promptTargets',
      expected: `${promptTokens - 1} rows, one for each token of the prompt but the first`,
      got: `shape [${shape.join(',')}] with ${data.length} values`,
    });
  }
  const bad = data.findIndex((id) => id >= vocabSize);
  if (bad < 0) return;
  throw complaint({
    field: `promptTargets[${bad}]`,
    expected: `a token id up to ${vocabSize - 1}, or a negative number for none`,
    got: String(data[bad]),
  });
}
