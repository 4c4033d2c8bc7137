/** Chat completions as OpenAI's API shapes them: whole, and in chunks. */
import type { StopReason } from '@loopwright/protocol';
import type { JsonObject } from '../checks.js';

export interface ChatUsage {
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** What all chunks of an answer have in common. */
export interface ChatAnswer {
  readonly id: string;
  /** What `model` says. */
  readonly model: string;
  readonly createdAtMs: number;
}

export interface ChatChoice {
  readonly text: string;
  readonly finishReason: StopReason;
}

const head = ({ id, model, createdAtMs }: ChatAnswer, object: string): JsonObject => ({
  id: `chatcmpl-${id}`,
  object,
  created: Math.floor(createdAtMs / 1000),
  model,
});

const usageOf = ({ promptTokens, completionTokens }: ChatUsage): JsonObject => ({
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  total_tokens: promptTokens + completionTokens,
});

export function encodeChatCompletion(
  answer: ChatAnswer,
  { choices, usage }: { readonly choices: readonly ChatChoice[]; readonly usage: ChatUsage },
): JsonObject {
  return {
    ...head(answer, 'chat.completion'),
    choices: choices.map(({ text, finishReason }, index) => ({
      index,
      message: { role: 'assistant', content: text, refusal: null },
      logprobs: null,
      finish_reason: finishReason,
    })),
    usage: usageOf(usage),
  };
}

export type ChatDelta =
  | { readonly type: 'begin' }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'end'; readonly finishReason: StopReason };

/** A chunk that tells of one choice. */
export function encodeChatChunk(answer: ChatAnswer, index: number, delta: ChatDelta): JsonObject {
  const content =
    delta.type === 'begin' ? { role: 'assistant', content: '' } : delta.type === 'text' ? { content: delta.text } : {};
  const finish_reason = delta.type === 'end' ? delta.finishReason : null;
  return {
    ...head(answer, 'chat.completion.chunk'),
    choices: [{ index, delta: content, logprobs: null, finish_reason }],
  };
}

/** The chunk after all choices, for those who asked for it. */
export function encodeUsageChunk(answer: ChatAnswer, usage: ChatUsage): JsonObject {
  return { ...head(answer, 'chat.completion.chunk'), choices: [], usage: usageOf(usage) };
}
