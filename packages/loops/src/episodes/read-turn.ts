/** From sampled tokens to what the model said. */
import type { SampledTokens } from '@loopwright/client';
import { type ChatMessage, endsInThought, type Tokenizer, type TurnEvent, turnParser } from '@loopwright/text';
import type { BrokenCall, ModelTurn, ToolCall } from './environment.js';

export interface ReadTurnOptions {
  readonly tokenizer: Tokenizer;
  /** Names of those offered. */
  readonly tools: readonly string[];
  /** What the model was given, which may end within its reasoning. */
  readonly prompt: readonly number[];
  readonly index: number;
}

/** Reads one answer by the marks of the model's own format; what can't be read as a call is never one. */
export function readTurn(
  { tokens, stopReason }: SampledTokens,
  { tokenizer, tools, prompt, index }: ReadTurnOptions,
): ModelTurn {
  const { turnFormat } = tokenizer;
  const isThinking = turnFormat.thinking && endsInThought(tokenizer, prompt);
  const parser = turnParser(turnFormat, { tools, isThinking });
  const stream = tokenizer.streamDecoder();
  const events: TurnEvent[] = [];
  for (const id of tokens) {
    const control = tokenizer.controlToken(id);
    if (control === undefined) events.push(...parser.text(stream.push(id)));
    else events.push(...parser.text(stream.flush()), ...parser.control(control));
  }
  events.push(...parser.text(stream.flush()), ...parser.end({ cut: stopReason === 'length' }));
  const ofType = <T extends TurnEvent['type']>(type: T) =>
    events.filter((event): event is Extract<TurnEvent, { type: T }> => event.type === type);
  const toolCalls = ofType('tool-call').map(
    ({ name, arguments: text }, call): ToolCall => ({
      id: `c${base36(index)}${base36(call)}`, // nine letters and digits: Mistral's templates take no others
      name,
      arguments: JSON.parse(text) as Record<string, unknown>, // true: the parser gives objects only
    }),
  );
  const brokenCalls = ofType('broken-call').map(({ raw, reason }): BrokenCall => ({ raw, reason }));
  const reasoning = join(ofType('reasoning'));
  // Broken calls stay in the text of the message, where the model sees what it wrote.
  const content = events
    .map((event) => (event.type === 'text' ? event.text : event.type === 'broken-call' ? event.raw : ''))
    .join('');
  return {
    index,
    text: join(ofType('text')),
    reasoning,
    toolCalls,
    brokenCalls,
    stopReason,
    message: messageOf(content, reasoning, toolCalls),
  };
}

function messageOf(content: string, reasoning: string, toolCalls: readonly ToolCall[]): ChatMessage {
  return {
    role: 'assistant',
    content,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(toolCalls.length === 0
      ? {}
      : {
          tool_calls: toolCalls.map(({ id, name, arguments: args }) => ({
            id,
            type: 'function',
            function: { name, arguments: args },
          })),
        }),
  };
}

function join(events: readonly { readonly text: string }[]): string {
  return events.map(({ text }) => text).join('');
}

const base36 = (value: number): string => value.toString(36).padStart(4, '0');
