/** Checks of an operation against its model, made at acceptance: refused at once, before any work. */
import { complaint, type Datum, type ModelCard, type Operation } from '@loopwright/protocol';
import { fixedLimits } from '../limits/limits.js';

/**
 * Token ids must be in the vocabulary, datums and prompts must fit the context; a prompt to sample from leaves room for one token.
 *
 * @throws `invalid_argument` for an id outside and too many datums, `context_length_exceeded` for one that is too long, both naming the field
 */
export function checkAgainstModel(operation: Operation, card: ModelCard): void {
  switch (operation.type) {
    case 'forward':
    case 'forward-backward':
      checkCount(operation.data.length);
      operation.data.forEach((datum, index) => {
        checkDatum(datum, `datumList[${index}]`, card);
      });
      return;
    case 'sample':
      checkTokens(operation.prompt, 'prompt', card);
      checkLength(operation.prompt.length, 'prompt', card.contextLength - 1, card);
      return;
    case 'compute-logprobs':
      checkTokens(operation.prompt, 'prompt', card);
      checkLength(operation.prompt.length, 'prompt', card.contextLength, card);
      return;
    case 'optim-step':
    case 'save-weights':
    case 'save-state':
    case 'load-state':
    case 'load-weights':
      return;
    default:
      operation satisfies never;
  }
}

function checkDatum({ modelInput, targetTokens }: Datum, field: string, card: ModelCard): void {
  checkLength(modelInput.length, `${field}.modelInput`, card.contextLength, card);
  checkTokens(modelInput, `${field}.modelInput`, card);
  checkTokens(targetTokens.data, `${field}.lossFnInputs.target_tokens`, card);
}

function checkCount(datums: number): void {
  const limit = fixedLimits.datums.value;
  if (datums <= limit) return;
  const [field, remedy] = ['datumList', 'split the batch over several calls'];
  throw complaint({ field, expected: `at most ${limit} datums`, got: String(datums), remedy });
}

function checkTokens(tokens: Int32Array, field: string, { id, vocabSize }: ModelCard): void {
  const at = tokens.findIndex((token) => token < 0 || token >= vocabSize);
  if (at < 0) return;
  throw complaint({
    field: `${field}[${at}]`,
    expected: `a token id from 0 to ${vocabSize - 1} (vocabulary of ${id})`,
    got: String(tokens[at]),
    remedy: 'encode with the tokenizer of this model',
  });
}

function checkLength(length: number, field: string, limit: number, { id, contextLength }: ModelCard): void {
  if (length >= 1 && length <= limit) return;
  if (length === 0) throw complaint({ field, expected: 'at least one token', got: 'none' });
  throw complaint({
    code: 'context_length_exceeded',
    field,
    expected: `at most ${limit} tokens (context of ${id}: ${contextLength})`,
    got: String(length),
    remedy: 'shorten it, or use a model with a longer context',
  });
}
