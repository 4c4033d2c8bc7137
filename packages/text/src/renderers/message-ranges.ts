/**
 * Which part of a rendered chat each message is.
 *
 * A template writes a message as it likes, and an earlier one otherwise once later ones follow. So the chat is rendered once more, with
 * the characters of each message replaced, one for one, by a stand-in of its own: where that comes out as long and otherwise
 * equal, the stand-ins tell whose text is where. Between the texts of two messages the marks that end messages are looked for; there
 * nothing but the template has written.
 */
import { JsonNumber, JsonObject } from '../template/exact-json.js';
import type { ChatMessage } from '../template/messages.js';
import type { RenderedChat } from '../tokenizer.js';
import type { FamilyMarks } from './families.js';

/** In characters of the rendered text, the marks around the message included; empty for a message that the template leaves out. */
export interface CharacterRange {
  readonly start: number;
  readonly end: number;
}

export interface MessageRangesOptions {
  readonly marks: FamilyMarks;
  /** Renders other messages with the same options. */
  readonly render: (messages: readonly ChatMessage[]) => string;
}

/** @param chat the rendering of `messages` */
export function messageRanges(
  { text, marked }: Pick<RenderedChat, 'text' | 'marked'>,
  messages: readonly ChatMessage[],
  { marks, render }: MessageRangesOptions,
): CharacterRange[] {
  if (messages.length === 0) return [];
  const owners = marks.messageEnds.length === 0 ? undefined : ownersOf(text, messages, render);
  const boundaries =
    owners === undefined
      ? boundariesByPrefix(text, messages, render)
      : boundariesByMarks(marked, messages, { owners, marks });
  return messages.map((_, i) => ({ start: boundaries[i]!, end: boundaries[i + 1]! }));
}

/** Texts that templates look for in a message. */
const inspected = /<[^<>\s]{1,64}>/g;
/** Left as they are, as templates trim white space, and JSON escapes the others: of a text, and of one that may be written as JSON. */
const unmarkable = {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: white space to Python
  text: /[\s\x1c-\x1f\x85]/,
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what JSON escapes
  json: /[\s"\\\u0000-\u001f\u007f\u0085]/,
} as const;

interface Marking {
  readonly standIn: string;
  /** What is left as it is. */
  readonly spared: RegExp | undefined;
  readonly kind: keyof typeof unmarkable;
}
const privateUse = { first: 0xe000, last: 0xf8ff };

/** For each character of the text the message that it came from; -1 for the template's own and for characters that tell nothing. */
function ownersOf(
  text: string,
  messages: readonly ChatMessage[],
  render: MessageRangesOptions['render'],
): Int32Array | undefined {
  const kinds = kindsOf(messages);
  const standIns = freeCharacters(text, Math.max(...kinds) + 1);
  if (standIns === undefined) return undefined;
  for (const spared of [undefined, inspected]) {
    const marked = messages.map((message, i) => markMessage(message, { standIn: standIns[kinds[i]!]!, spared }));
    let rendered: string;
    try {
      rendered = render(marked);
    } catch {
      continue; // the template refuses only the marked form: it inspects what is said
    }
    const owners = compare(text, rendered, standIns);
    if (owners !== undefined) return owners;
  }
  return undefined;
}

/** Equal messages get the same stand-in, as templates compare messages; neighbours never do. */
function kindsOf(messages: readonly ChatMessage[]): number[] {
  const known = new Map<string, number>();
  let next = 0;
  const kinds: number[] = [];
  for (const message of messages) {
    const key = JSON.stringify(message);
    let kind = known.get(key);
    if (kind === undefined || kind === kinds.at(-1)) {
      kind = next++;
      known.set(key, kind);
    }
    kinds.push(kind);
  }
  return kinds;
}

function freeCharacters(text: string, count: number): string[] | undefined {
  const used = new Set(text.match(/[\ue000-\uf8ff]/g));
  const free: string[] = [];
  for (let code = privateUse.first; code <= privateUse.last && free.length < count; code++) {
    const character = String.fromCharCode(code);
    if (!used.has(character)) free.push(character);
  }
  return free.length === count ? free : undefined;
}

function compare(text: string, rendered: string, standIns: readonly string[]): Int32Array | undefined {
  if (rendered.length !== text.length) return undefined;
  const kindOf = new Map(standIns.map((standIn, kind) => [standIn, kind]));
  const owners = new Int32Array(text.length).fill(-1);
  for (let at = 0; at < text.length; at++) {
    const kind = kindOf.get(rendered[at]!);
    if (kind !== undefined) owners[at] = kind;
    else if (rendered[at] !== text[at]) return undefined;
  }
  return owners;
}

const saidKeys = ['content', 'reasoning_content', 'reasoning', 'thinking'] as const;

function markMessage(message: ChatMessage, given: Omit<Marking, 'kind'>): ChatMessage {
  const marking: Marking = {
    ...given,
    kind: message.role === 'assistant' || message.role === 'user' ? 'text' : 'json',
  };
  const said = saidKeys.flatMap((key) => (message[key] === undefined ? [] : [[key, markValue(message[key], marking)]]));
  const { tool_calls: calls } = message;
  return {
    ...message,
    ...Object.fromEntries(said),
    ...(Array.isArray(calls)
      ? { tool_calls: calls.map((call: unknown) => markCall(call, { ...marking, kind: 'json' })) }
      : {}),
  };
}

/** The arguments alone: a name may be written again where another message begins. */
function markCall(call: unknown, marking: Marking): unknown {
  if (!isRecord(call)) return call;
  const inner = isRecord(call.function) ? { function: markCall(call.function, marking) } : {};
  return { ...call, ...inner, ...('arguments' in call ? { arguments: markValue(call.arguments, marking) } : {}) };
}

function markValue(value: unknown, marking: Marking): unknown {
  if (typeof value === 'string') return markText(value, marking);
  if (Array.isArray(value)) return value.map((item: unknown) => markValue(item, marking));
  if (value instanceof JsonNumber || !isRecord(value)) return value;
  const entries = (value instanceof JsonObject ? value.entries : Object.entries(value)).map(
    ([key, item]) => [key, key === 'type' ? item : markValue(item, marking)] as const,
  );
  return value instanceof JsonObject ? new JsonObject(entries as JsonObject['entries']) : Object.fromEntries(entries); // true: texts became texts
}

function markText(text: string, { standIn, spared, kind }: Marking): string {
  const kept =
    spared === undefined ? [] : [...text.matchAll(spared)].map((match) => [match.index, match.index + match[0].length]);
  let next = 0;
  let marked = '';
  for (let at = 0; at < text.length; at++) {
    while (next < kept.length && at >= kept[next]![1]!) next++;
    const isSpared = next < kept.length && at >= kept[next]![0]!;
    marked += isSpared || unmarkable[kind].test(text[at]!) ? text[at] : standIn;
  }
  return marked;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A message that is found in the text: from its first character to its last. */
interface Found {
  readonly message: number;
  readonly start: number;
  readonly end: number;
}

/** @param text marked, so that what is said has no marks */
function boundariesByMarks(
  text: string,
  messages: readonly ChatMessage[],
  { owners, marks }: { readonly owners: Int32Array; readonly marks: FamilyMarks },
): number[] {
  const found = foundMessages(owners, kindsOf(messages));
  const boundaries = new Array<number>(messages.length + 1).fill(0);
  const first = found[0]?.message ?? messages.length;
  // Before the first text: what the template says of its own, and then messages without text.
  const leading = endsWithin(text, { from: 0, to: found[0]?.start ?? text.length, owners }, marks, first + 1);
  const own = leading.length - first;
  boundaries[0] = own > 0 ? leading[own - 1]! : 0;
  for (let message = 1; message <= first; message++)
    boundaries[message] = leading[own - 1 + message] ?? leading.at(-1) ?? 0;
  found.forEach(({ message, end }, i) => {
    const next = found[i + 1];
    const last = next?.message ?? messages.length;
    const to = next?.start ?? text.length;
    const wanted = last - message;
    // Ends beyond those wanted are within the first message, as that of gpt-oss's reasoning before a call.
    const ends = endsWithin(text, { from: end, to, owners }, marks, wanted).slice(-wanted);
    for (let boundary = message + 1; boundary <= last; boundary++)
      boundaries[boundary] = ends[boundary - message - 1] ?? ends.at(-1) ?? to;
  });
  return boundaries;
}

/** Messages in the order of the chat. One that the template moved behind a later one, as Mistral's system message, has no place of its own. */
function foundMessages(owners: Int32Array, kinds: readonly number[]): Found[] {
  const runs: { readonly kind: number; readonly start: number; end: number }[] = [];
  owners.forEach((kind, at) => {
    if (kind < 0) return;
    const last = runs.at(-1);
    if (last?.kind === kind) last.end = at + 1;
    else runs.push({ kind, start: at, end: at + 1 });
  });
  const found: Found[] = [];
  let next = 0;
  const runOf = (kind: number): number => runs.findIndex((run, i) => i >= next && run.kind === kind);
  kinds.forEach((kind, message) => {
    const run = runOf(kind);
    if (run < 0) return;
    const later = kinds.slice(message + 1).find((other) => other !== kind && runOf(other) >= 0);
    if (later !== undefined && runOf(later) < run) return;
    found.push({ message, start: runs[run]!.start, end: runs[run]!.end });
    next = run + 1;
  });
  return found;
}

/** Places behind the marks that end messages, a line break behind them included. Inner ones count where there are too few others. */
function endsWithin(
  text: string,
  { from, to, owners }: { readonly from: number; readonly to: number; readonly owners: Int32Array },
  { messageEnds, innerEnds }: FamilyMarks,
  wanted: number,
): number[] {
  const search = (marks: readonly string[]): number[] => {
    const ends: number[] = [];
    for (let at = from; at < to; at++) {
      const mark = owners[at]! < 0 ? marks.find((one) => text.startsWith(one, at) && at + one.length <= to) : undefined;
      if (mark === undefined) continue;
      at += mark.length;
      ends.push(text[at] === '\n' ? at + 1 : at);
      at--;
    }
    return ends;
  };
  const ends = search(messageEnds);
  if (ends.length >= wanted || innerEnds.length === 0) return ends;
  const isFollowed = (at: number): boolean => messageEnds.some((mark) => text.startsWith(mark, at));
  return [
    ...ends,
    ...search(innerEnds)
      .map((at) => (text[at - 1] === '\n' ? at - 1 : at))
      .filter((at) => !isFollowed(at)),
  ].sort((left, right) => left - right);
}

/** For formats of which the marks aren't known: a message ends where the chat up to it, rendered alone, stops to be how the whole begins. */
function boundariesByPrefix(
  text: string,
  messages: readonly ChatMessage[],
  render: MessageRangesOptions['render'],
): number[] {
  const boundaries = [0];
  for (let count = 1; count < messages.length; count++) {
    const last = boundaries.at(-1)!;
    try {
      boundaries.push(Math.max(last, commonPrefix(text, render(messages.slice(0, count)))));
    } catch {
      boundaries.push(last); // a template that refuses a chat which ends here
    }
  }
  try {
    return [...boundaries, Math.max(boundaries.at(-1)!, commonPrefix(text, render(messages)))];
  } catch {
    return [...boundaries, text.length];
  }
}

/** Characters at the beginning that both have. */
export function commonPrefix(left: string, right: string): number {
  const most = Math.min(left.length, right.length);
  let length = 0;
  while (length < most && left.charCodeAt(length) === right.charCodeAt(length)) length++;
  return length;
}
