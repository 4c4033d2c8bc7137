/** Chat completions as OpenAI's API shapes them: whole, and in chunks. */
import type { JsonObject } from '../checks.js';
import {
  type AnswerHead,
  type AnswerToken,
  type AnswerUsage,
  encodePromptIds,
  encodeTokenIds,
  encodeUsage,
  type LikelyToken,
} from './answer.js';

/** `tool_calls`: the turn ended by itself and has calls, all of them whole. */
export type FinishReason = 'stop' | 'length' | 'tool_calls';

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON of an object. */
  readonly arguments: string;
}

/** What began as a call and is none; `raw` is in the content as well. */
export interface BrokenCall {
  readonly reason: string;
  readonly raw: string;
}

export interface ChatChoice {
  readonly content: string;
  readonly reasoning: string;
  readonly toolCalls: readonly ToolCall[];
  readonly brokenCalls: readonly BrokenCall[];
  readonly finishReason: FinishReason;
  /** Those whose log-probs are told; absent where nobody asked. */
  readonly logprobs?: readonly AnswerToken[];
  /** Those whose ids are told; absent where nobody asked. */
  readonly tokens?: readonly AnswerToken[];
}

const head = ({ id, model, createdAtMs }: AnswerHead, object: string): JsonObject => ({
  id: `chatcmpl-${id}`,
  object,
  created: Math.floor(createdAtMs / 1000),
  model,
});

/** `promptTokenIds` where token ids were asked for. */
export function encodeChatCompletion(
  answer: AnswerHead,
  {
    choices,
    usage,
    promptTokenIds,
  }: {
    readonly choices: readonly ChatChoice[];
    readonly usage: AnswerUsage;
    readonly promptTokenIds?: ArrayLike<number>;
  },
): JsonObject {
  return {
    ...head(answer, 'chat.completion'),
    choices: choices.map((choice, index) => ({
      index,
      message: encodeMessage(choice),
      logprobs: encodeLogprobs(choice.logprobs),
      finish_reason: choice.finishReason,
      ...encodeTokenIds(choice.tokens),
    })),
    usage: encodeUsage(usage),
    ...encodePromptIds(promptTokenIds),
  };
}

function encodeMessage({ content, reasoning, toolCalls, brokenCalls }: ChatChoice): JsonObject {
  return {
    role: 'assistant',
    content: content === '' && toolCalls.length > 0 ? null : content,
    refusal: null,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls.map(encodeCall) }),
    ...(brokenCalls.length === 0 ? {} : { tool_call_errors: brokenCalls }),
  };
}

const encodeCall = ({ id, name, arguments: args }: ToolCall): JsonObject => ({
  id,
  type: 'function',
  function: { name, arguments: args },
});

function encodeLogprobs(tokens: readonly AnswerToken[] | undefined): JsonObject | null {
  if (tokens === undefined) return null;
  const content = tokens.map((token) => ({
    ...encodeLikely(token),
    top_logprobs: (token.top ?? []).map(encodeLikely),
  }));
  return { content, refusal: null };
}

const encodeLikely = ({ text, bytes, logprob }: LikelyToken): JsonObject => ({
  token: text,
  bytes: Array.from(bytes),
  logprob,
});

export type ChatDelta =
  | { readonly type: 'begin'; readonly promptTokenIds?: ArrayLike<number> }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  /** A call is told at once and whole: one that turns out to be cut was then never told. */
  | { readonly type: 'tool-call'; readonly index: number; readonly call: ToolCall }
  | { readonly type: 'broken-call'; readonly call: BrokenCall }
  /** Tokens whose text is held back or shows nothing. */
  | { readonly type: 'tokens' }
  | { readonly type: 'end'; readonly finishReason: FinishReason };

/** Tokens that a chunk tells of besides. */
export interface ChunkTokens {
  readonly logprobs?: readonly AnswerToken[];
  readonly tokens?: readonly AnswerToken[];
}

/** A chunk that tells of one choice. */
export function encodeChatChunk(
  answer: AnswerHead,
  index: number,
  delta: ChatDelta,
  { logprobs, tokens }: ChunkTokens = {},
): JsonObject {
  return {
    ...head(answer, 'chat.completion.chunk'),
    choices: [
      {
        index,
        delta: encodeDelta(delta),
        logprobs: encodeLogprobs(logprobs),
        finish_reason: delta.type === 'end' ? delta.finishReason : null,
        ...encodeTokenIds(tokens),
      },
    ],
    ...(delta.type === 'begin' ? encodePromptIds(delta.promptTokenIds) : {}),
  };
}

function encodeDelta(delta: ChatDelta): JsonObject {
  switch (delta.type) {
    case 'begin':
      return { role: 'assistant', content: '' };
    case 'text':
      return { content: delta.text };
    case 'reasoning':
      return { reasoning_content: delta.text };
    case 'tool-call':
      return { tool_calls: [{ index: delta.index, ...encodeCall(delta.call) }] };
    case 'broken-call':
      return { content: delta.call.raw, tool_call_errors: [delta.call] };
    case 'tokens':
    case 'end':
      return {};
    default:
      return delta satisfies never;
  }
}

/** The chunk after all choices, for those who asked for it. */
export function encodeUsageChunk(answer: AnswerHead, usage: AnswerUsage): JsonObject {
  return { ...head(answer, 'chat.completion.chunk'), choices: [], usage: encodeUsage(usage) };
}
