/** A turn of the model, from its tokens to a message. */
import type { ChatMessage } from '../template/messages.js';
import type { Tokenizer } from '../tokenizer.js';
import type { BrokenReason, TurnEvent } from '../turns/turn-event.js';
import { turnParser } from '../turns/turn-format.js';
import { shortCallId } from './prepare-messages.js';

/**
 * `ok`: a whole turn, ended by its mark. `truncated`: it has no end, so that a limit or a stop text cut it. `malformed`: what began as
 * a call, or as a message of gpt-oss, is none, or there is something behind the end. `unmarked`: ended by an end of sequence instead of the mark of this format, as
 * base models do. Of several the first in the order malformed, truncated, unmarked; a call that was cut makes a turn `truncated`.
 */
export type ParseStatus = 'ok' | 'truncated' | 'malformed' | 'unmarked';

/** What began as a call and is none; never to be executed. */
export interface BrokenCall {
  readonly reason: BrokenReason | 'behind-end';
  /** Its text, marks included. */
  readonly raw: string;
}

/** A call as templates take it. */
export interface ParsedCall {
  /** Nine letters or digits, which every template takes. The model's own where it writes one. */
  readonly id: string;
  readonly type: 'function';
  /** `arguments` is the JSON text of an object, as the model wrote it. */
  readonly function: { readonly name: string; readonly arguments: string };
}

export interface ParsedMessage extends ChatMessage {
  readonly role: 'assistant';
  /** What is said. Text of broken calls is in it, so that the model sees in the next prompt what it wrote. */
  readonly content: string;
  readonly reasoning_content?: string;
  /** Whole and well-formed calls of tools that were offered; absent where there are none. */
  readonly tool_calls?: readonly ParsedCall[];
}

export interface ParsedTurn {
  readonly message: ParsedMessage;
  readonly status: ParseStatus;
  readonly broken: readonly BrokenCall[];
  /** The text of all tokens, control tokens included. */
  readonly raw: string;
  /** The token that ended the turn. */
  readonly endToken?: number;
  /**
   * Index of the first token that isn't what encoding `raw` gives: a model may draw other tokens for the same text. Train on the
   * tokens that were drawn. Absent where all are equal.
   */
  readonly driftsAt?: number;
}

export interface ParseOptions {
  /** Tools that were offered: definitions as templates take them, or names. Without any, what looks like a call is text. */
  readonly tools?: readonly unknown[];
  /** The prompt ends within the reasoning, as `RenderedMessages.thinkingOpen` says. */
  readonly thinkingOpen?: boolean;
}

export interface TurnMarks {
  /** Every id that ends a turn. */
  readonly stopTokenIds: readonly number[];
  /** Those of them that are the format's own; empty where none are known, and then all are as good. */
  readonly turnEndIds: readonly number[];
}

export function parseTurn(
  tokenizer: Tokenizer,
  tokens: ArrayLike<number>,
  { tools = [], thinkingOpen = false, stopTokenIds, turnEndIds }: ParseOptions & TurnMarks,
): ParsedTurn {
  const ids = Array.from(tokens);
  const raw = tokenizer.decode(ids, { skipSpecialTokens: false });
  const end = ids.findIndex((id) => stopTokenIds.includes(id));
  const events = eventsOf(tokenizer, end < 0 ? ids : ids.slice(0, end), {
    names: toolNames(tools),
    thinkingOpen,
    cut: end < 0,
  });
  const behind = end < 0 ? '' : tokenizer.decode(ids.slice(end + 1), { skipSpecialTokens: false });
  const { message, broken } = collect(events, tokenizer.turnFormat.family === 'gpt-oss');
  const all: BrokenCall[] = behind.trim() === '' ? broken : [...broken, { reason: 'behind-end', raw: behind }];
  const isOwnEnd = turnEndIds.length === 0 || turnEndIds.includes(ids[end] ?? -1);
  const driftsAt = driftOf(tokenizer, ids, raw);
  return {
    message,
    status: statusOf(all, end, isOwnEnd),
    broken: all,
    raw,
    ...(end < 0 ? {} : { endToken: ids[end]! }),
    ...(driftsAt === undefined ? {} : { driftsAt }),
  };
}

function statusOf(broken: readonly BrokenCall[], end: number, isOwnEnd: boolean): ParseStatus {
  if (broken.some(({ reason }) => reason !== 'cut')) return 'malformed';
  if (end < 0 || broken.length > 0) return 'truncated';
  return isOwnEnd ? 'ok' : 'unmarked';
}

interface ReadOptions {
  readonly names: readonly string[];
  readonly thinkingOpen: boolean;
  readonly cut: boolean;
}

function eventsOf(
  tokenizer: Tokenizer,
  ids: readonly number[],
  { names, thinkingOpen, cut }: ReadOptions,
): TurnEvent[] {
  const parser = turnParser(tokenizer.turnFormat, { tools: names, isThinking: thinkingOpen });
  const events: TurnEvent[] = [];
  let from = 0;
  const readText = (to: number): void => {
    if (to > from) events.push(...parser.text(tokenizer.decode(ids.slice(from, to))));
    from = to + 1;
  };
  ids.forEach((id, at) => {
    const control = tokenizer.controlToken(id);
    if (control === undefined) return;
    readText(at);
    events.push(...parser.control(control));
  });
  readText(ids.length);
  return [...events, ...parser.end({ cut })];
}

/** Texts that gpt-oss's template refuses in what a message says. */
const refusedByHarmony = /<\|channel\|>(analysis|final)<\|message\|>/;

function collect(
  events: readonly TurnEvent[],
  isHarmony: boolean,
): { readonly message: ParsedMessage; readonly broken: BrokenCall[] } {
  let [content, reasoning] = ['', ''];
  const calls: ParsedCall[] = [];
  const broken: BrokenCall[] = [];
  for (const event of events) {
    switch (event.type) {
      case 'text':
        content += event.text;
        break;
      case 'reasoning':
        reasoning += event.text;
        break;
      case 'tool-call': {
        const { name, arguments: args, id = `${calls.length}:${name}:${args}` } = event;
        calls.push({ id: shortCallId(id), type: 'function', function: { name, arguments: args } });
        break;
      }
      case 'broken-call':
        broken.push({ reason: event.reason, raw: event.raw });
        if (!isHarmony || !refusedByHarmony.test(event.raw)) content += event.raw;
        break;
      default:
        event satisfies never;
    }
  }
  const message: ParsedMessage = {
    role: 'assistant',
    content,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
  return { message, broken };
}

function driftOf(tokenizer: Tokenizer, ids: readonly number[], raw: string): number | undefined {
  // Behind a control token, as in a chat: some vocabularies begin a text otherwise.
  const front = tokenizer.controlToken(tokenizer.eosTokenIds[0] ?? -1);
  const again = tokenizer.encode((front ?? '') + raw, { parseSpecialTokens: true }).slice(front === undefined ? 0 : 1);
  const at = ids.findIndex((id, i) => id !== again[i]);
  if (at >= 0) return at;
  return again.length > ids.length ? ids.length : undefined;
}

/** Names out of definitions `{ function: { name } }` or `{ name }`, or names. */
function toolNames(tools: readonly unknown[]): string[] {
  return tools.flatMap((tool) => {
    if (typeof tool === 'string') return [tool];
    const { name, function: inner } = (tool ?? {}) as {
      readonly name?: unknown;
      readonly function?: { readonly name?: unknown };
    }; // true: any value may be read so, and is checked
    const given = inner?.name ?? name;
    return typeof given === 'string' ? [given] : [];
  });
}

const explanations: Readonly<Record<BrokenCall['reason'], string>> = {
  cut: 'it was cut off before its end',
  'not-json': 'it is not one JSON object',
  'doubled-key': 'it has a key twice',
  'wrong-shape': 'it needs a name, and arguments that are an object',
  'unknown-tool': 'there is no tool of that name',
  'bad-header': 'its header can’t be read',
  'behind-end': 'something stands behind its end',
};

/**
 * What to tell the model of a turn with broken calls, as the message that follows its own: nothing was executed, and why. Undefined where
 * nothing is broken. Its role is `user`: a tool's result needs a call that it belongs to, which there is none of here.
 */
export function brokenCallReply({ broken }: Pick<ParsedTurn, 'broken'>): ChatMessage | undefined {
  const [first] = broken;
  if (first === undefined) return undefined;
  const reasons = [...new Set(broken.map(({ reason }) => explanations[reason]))];
  return { role: 'user', content: `Tool error: your call was not executed, as ${reasons.join('; ')}. Write it again.` };
}
