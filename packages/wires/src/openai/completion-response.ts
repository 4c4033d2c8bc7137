/** Completions as OpenAI's older API shapes them: whole, and in chunks of the same shape. */
import type { StopReason } from '@loopwright/protocol';
import type { JsonObject } from '../checks.js';
import {
  type AnswerHead,
  type AnswerToken,
  type AnswerUsage,
  encodePromptIds,
  encodeTokenIds,
  encodeUsage,
} from './answer.js';

export interface CompletionChoice {
  readonly text: string;
  /** Null within a stream. */
  readonly finishReason: StopReason | null;
  /** Characters of the answer in front of this text; 0 for a whole one. */
  readonly textOffset?: number;
  readonly logprobs?: readonly AnswerToken[];
  readonly tokens?: readonly AnswerToken[];
  /** Where token ids were asked for: of the prompt that this answers. */
  readonly promptTokenIds?: ArrayLike<number>;
}

/** A whole answer, or a chunk of one. @param firstIndex of the first choice here */
export function encodeCompletion(
  { id, model, createdAtMs }: AnswerHead,
  {
    choices,
    usage,
    firstIndex = 0,
  }: { readonly choices: readonly CompletionChoice[]; readonly usage?: AnswerUsage; readonly firstIndex?: number },
): JsonObject {
  return {
    id: `cmpl-${id}`,
    object: 'text_completion',
    created: Math.floor(createdAtMs / 1000),
    model,
    choices: choices.map((choice, i) => ({
      index: firstIndex + i,
      text: choice.text,
      logprobs: encodeLogprobs(choice),
      finish_reason: choice.finishReason,
      ...encodeTokenIds(choice.tokens),
      ...encodePromptIds(choice.promptTokenIds),
    })),
    ...(usage === undefined ? {} : { usage: encodeUsage(usage) }),
  };
}

function encodeLogprobs({ logprobs, textOffset = 0 }: CompletionChoice): JsonObject | null {
  if (logprobs === undefined) return null;
  let at = textOffset;
  const offsets = logprobs.map(({ text }) => {
    const offset = at;
    at += text.length;
    return offset;
  });
  return {
    tokens: logprobs.map(({ text }) => text),
    token_logprobs: logprobs.map(({ logprob }) => logprob),
    top_logprobs: logprobs.some(({ top }) => top !== undefined) ? logprobs.map(encodeTop) : null,
    text_offset: offsets,
  };
}

/** By text, as this API has it: the drawn token is always there with its own value; of others with one text the likeliest stands. */
function encodeTop(token: AnswerToken): JsonObject {
  const byText = new Map<string, number>();
  for (const { text, logprob } of token.top ?? []) if (!byText.has(text)) byText.set(text, logprob);
  byText.set(token.text, token.logprob);
  return Object.fromEntries(byText);
}
