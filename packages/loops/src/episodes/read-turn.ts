/** From sampled tokens to what the model said. */
import type { SampledTokens } from '@loopwright/client';
import type { Renderer } from '@loopwright/text';
import type { ModelTurn, ToolCall } from './environment.js';

export interface ReadTurnOptions {
  readonly renderer: Renderer;
  /** Names of those offered. */
  readonly tools: readonly string[];
  /** What the model was given ends within its reasoning. */
  readonly thinkingOpen: boolean;
  readonly index: number;
}

/** An answer, read by the marks of the model's own format; what can't be read as a call is never one. */
export interface ReadTurn {
  readonly turn: ModelTurn;
  /** Its text has other ids when it is encoded again. */
  readonly isRetokenized: boolean;
}

export function readTurn(
  { tokens, stopReason }: SampledTokens,
  { renderer, tools, thinkingOpen, index }: ReadTurnOptions,
): ReadTurn {
  const { message, broken, driftsAt } = renderer.parse(tokens, { tools, thinkingOpen });
  const toolCalls = (message.tool_calls ?? []).map(
    ({ id, function: { name, arguments: text } }): ToolCall => ({
      id,
      name,
      arguments: JSON.parse(text) as Record<string, unknown>, // true: the parser gives objects only
    }),
  );
  const turn: ModelTurn = {
    index,
    text: message.content,
    reasoning: message.reasoning_content ?? '',
    toolCalls,
    brokenCalls: broken,
    stopReason,
    message,
  };
  return { turn, isRetokenized: driftsAt !== undefined };
}
