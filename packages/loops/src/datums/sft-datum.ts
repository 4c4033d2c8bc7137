/** Datums for supervised fine-tuning. */
import { complaint, type DatumFor } from '@loopwright/protocol';
import type { ChatMessage, EncodeChatOptions, Tokenizer } from '@loopwright/text';
import { checkNumbers, checkTokens, type Tokens } from './checks.js';

export interface SftDatumOptions {
  /** P ≥ 1 tokens that are given: no loss. */
  readonly prompt: Tokens;
  /** R ≥ 1 tokens to learn. */
  readonly completion: Tokens;
  /** R: what each token of the completion counts; 1 by default. */
  readonly weights?: ArrayLike<number>;
}

/**
 * A datum of a prompt and the answer to learn. With S = prompt + completion, the model input is S without its last token,
 * the targets are S without its first, and weights are 0 on the P − 1 positions that predict prompt tokens. Append the
 * end-of-sequence id to the completion if the model is to learn to stop.
 *
 * @throws `invalid_argument` for an empty prompt or completion, and for weights of another length or not finite
 */
export function sftDatum({ prompt, completion, weights }: SftDatumOptions): DatumFor<'cross_entropy'> {
  const context = checkTokens(prompt, 'prompt', 'begin with at least one token, such as the beginning of sequence');
  const answer = checkTokens(completion, 'completion', 'leave examples without an answer out');
  const answerWeights =
    weights === undefined
      ? answer.map(() => 1)
      : checkNumbers(weights, { field: 'weights', length: answer.length, of: 'completion' });
  const whole = [...context, ...answer];
  return {
    modelInput: whole.slice(0, -1),
    lossFnInputs: {
      targetTokens: whole.slice(1),
      weights: [...new Array<number>(context.length - 1).fill(0), ...answerWeights],
    },
  };
}

/**
 * A datum of a chat, with loss on the assistant's tokens only, the one that ends its turn included. What follows the last
 * of them is cut off.
 *
 * @param options `turns: 'last'` learns the last answer only; `tools` and template variables as for `applyChatTemplate`
 * @throws `invalid_argument` when no message is the assistant's, or the template can't tell its tokens apart
 */
export function sftDatumFromMessages(
  tokenizer: Pick<Tokenizer, 'encodeChat'>,
  messages: readonly ChatMessage[],
  options: EncodeChatOptions = {},
): DatumFor<'cross_entropy'> {
  const { tokens, assistantMask } = tokenizer.encodeChat(messages, options);
  const length = assistantMask.lastIndexOf(true) + 1;
  // The first token is predicted by nothing, so an answer that begins with it has one token less to learn.
  if (!assistantMask.slice(1).includes(true)) {
    throw complaint({
      field: 'messages',
      expected: 'at least one assistant message with text, after something that prompts it',
      got: `${messages.length} messages without`,
      remedy: 'add the answer that is to be learned',
    });
  }
  return {
    modelInput: tokens.slice(0, length - 1),
    lossFnInputs: {
      targetTokens: tokens.slice(1, length),
      weights: assistantMask.slice(1, length).map(Number),
    },
  };
}
