/** What chat completions and completions have in common in their answers. */
import type { JsonObject } from '../checks.js';

export interface AnswerUsage {
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** What all chunks of an answer have in common. */
export interface AnswerHead {
  readonly id: string;
  /** What `model` says: as the request named it. */
  readonly model: string;
  readonly createdAtMs: number;
}

/** A token that was likely at a position. */
export interface LikelyToken {
  readonly id: number;
  /** At temperature 1, without truncation. */
  readonly logprob: number;
  readonly text: string;
  readonly bytes: Uint8Array;
}

/** A sampled token, as clients are told of it. */
export interface AnswerToken extends LikelyToken {
  /** The likeliest in its place, likeliest first; absent where nobody asked. */
  readonly top?: readonly LikelyToken[];
}

export const encodeUsage = ({ promptTokens, completionTokens }: AnswerUsage): JsonObject => ({
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  total_tokens: promptTokens + completionTokens,
});

/** Ids and log-probs as they were sampled, the token that ended the turn included. */
export function encodeTokenIds(tokens: readonly AnswerToken[] | undefined): JsonObject {
  if (tokens === undefined) return {};
  return { token_ids: tokens.map(({ id }) => id), token_logprobs: tokens.map(({ logprob }) => logprob) };
}

export function encodePromptIds(promptTokenIds: ArrayLike<number> | undefined): JsonObject {
  return promptTokenIds === undefined ? {} : { prompt_token_ids: Array.from(promptTokenIds) };
}
