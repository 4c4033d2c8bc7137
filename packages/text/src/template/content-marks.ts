/**
 * Telling a template's own text from the text of messages, so that what a message says never becomes a control token.
 *
 * The chat is rendered twice: as it is, and with characters of the content replaced, one for one, by stand-ins from the
 * Unicode private-use area. Where the second rendering, with the stand-ins put back, equals the first, every stand-in
 * marks a character that came from content; control tokens are then looked for in the marked text, where content can't
 * match. Two ways of marking, the stronger first:
 *
 * 1. every character that occurs in any control token (but white space, which templates trim);
 * 2. where a template inspects content (splits at `</think>`, compares a value) and so renders the marked chat otherwise:
 *    only whole control tokens in content, and at both ends of each text what could be joined to one.
 *
 * Marks of the template that aren't special tokens (`<think>`, `<tool_response>`) are looked for by some templates in what is said. Where a chat comes out otherwise for it, these are left in
 * place, as few as will do: first marks of reasoning in what the assistant says; then marks that a user's text begins and ends with as well; then all of them. If nothing comes out
 * equal, the chat is refused rather than rendered with a risk.
 */
import { complaint } from '@loopwright/protocol';
import { JsonNumber, JsonObject } from './exact-json.js';
import type { JsonValue } from './messages.js';

/** U+E000–U+F8FF. */
const privateUse = { first: 0xe000, last: 0xf8ff };

export interface MarkedText {
  /** As rendered, content included. */
  readonly plain: string;
  /** Same length; characters of content that matter are replaced by stand-ins. */
  readonly marked: string;
  /** Puts the content back. */
  unmark(text: string): string;
}

type Mark = (text: string) => string;

/** What a marking is applied to: messages with roles and types left as they are, tools and variables. */
export interface MarkTargets {
  readonly messages: readonly Readonly<Record<string, JsonValue>>[];
  readonly tools: JsonValue;
  readonly variables: Readonly<Record<string, JsonValue>>;
}

/** Texts of the tokens that content must not produce. */
export interface ControlTexts {
  readonly specials: readonly string[];
  /** Marks of the template that aren't special. */
  readonly plainMarks: readonly string[];
}

/**
 * @param render renders marked or unmarked input
 * @throws what `render` throws for the plain input; `invalid_argument` when content can't be told from the template
 */
export function renderMarked(
  texts: ControlTexts,
  targets: MarkTargets,
  render: (targets: MarkTargets) => string,
): MarkedText {
  const plain = render(targets);
  const alphabet = alphabetOf([...texts.specials, ...texts.plainMarks]);
  const first = freeBlock(plain, alphabet);
  const standIn = new Map(alphabet.map((char, i) => [char, String.fromCharCode(first + i)]));
  const original = new Map([...standIn].map(([char, mark]) => [mark, char]));
  const unmark = (text: string): string => Array.from(text, (char) => original.get(char) ?? char).join('');
  const replaceAll: Mark = (text) => Array.from(text, (char) => standIn.get(char) ?? char).join('');
  for (const { other, contentOf } of markings(texts, replaceAll)) {
    let marked: string;
    try {
      marked = render({
        messages: targets.messages.map((message) =>
          markRecord(message, { content: contentOf(String(message.role)), other }, true),
        ),
        tools: markValue(targets.tools, { content: contentOf('tools'), other }),
        variables: markRecord(targets.variables, { content: other, other }, false),
      });
    } catch {
      continue; // the template refuses only the marked form: it inspects content
    }
    if (unmark(marked) === plain) return { plain, marked, unmark };
  }
  throw complaint({
    field: 'messages',
    expected: 'content that the chat template prints as it is',
    got: 'text of a control token, in a place where the template changes or inspects the content',
    remedy: 'remove the control token from the content, or render the text and encode it yourself',
  });
}

interface Marking {
  /** For texts of a message, by its role. */
  readonly contentOf: (role: string) => Mark;
  /** For what templates compare: keys, and values of `type`. */
  readonly other: Mark;
}

/** From the strongest to the one that leaves most in place. */
function* markings({ specials, plainMarks }: ControlTexts, replaceAll: Mark): Generator<Marking> {
  const risky =
    (texts: readonly string[]): Mark =>
    (text) =>
      markRisky(text, texts, replaceAll);
  const other = risky([...specials, ...plainMarks]);
  yield { contentOf: () => replaceAll, other };
  yield { contentOf: () => other, other };
  if (plainMarks.length === 0) return;
  const said = risky([...specials, ...plainMarks.filter((mark) => !mark.includes('think'))]);
  const assistantSaid = (role: string, asked: Mark): Mark =>
    role === 'assistant' ? said : role === 'user' ? asked : other;
  yield { contentOf: (role) => assistantSaid(role, other), other };
  yield { contentOf: (role) => assistantSaid(role, withoutEnds(plainMarks, other)), other };
  yield { contentOf: () => risky(specials), other: risky(specials) };
}

/** Leaves a mark that a text begins or ends with, white space aside, as it is. */
function withoutEnds(plainMarks: readonly string[], mark: Mark): Mark {
  return (text) => {
    const trimmed = text.trim();
    const front = plainMarks.find((one) => trimmed.startsWith(one))?.length ?? 0;
    const back = plainMarks.find((one) => trimmed.length - front >= one.length && trimmed.endsWith(one))?.length ?? 0;
    const at = text.length - text.trimStart().length;
    const [start, end] = [at + front, at + trimmed.length - back];
    return text.slice(0, start) + mark(text.slice(start, end)) + text.slice(end);
  };
}

/** Characters of control tokens, one UTF-16 unit each, white space left out. */
function alphabetOf(controlTokens: readonly string[]): string[] {
  const characters = new Set(controlTokens.flatMap((token) => Array.from(token)));
  return [...characters].filter((char) => char.length === 1 && /\S/.test(char));
}

/** Start of a run of private-use characters that neither the text nor the alphabet uses. */
function freeBlock(text: string, alphabet: readonly string[]): number {
  const used = new Set<number>();
  for (const char of [...alphabet, ...(text.match(/[\ue000-\uf8ff]/g) ?? [])]) used.add(char.charCodeAt(0));
  let run = 0;
  for (let code = privateUse.first; code <= privateUse.last; code++) {
    run = used.has(code) ? 0 : run + 1;
    if (run >= Math.max(1, alphabet.length)) return code - run + 1;
  }
  throw complaint({
    field: 'messages',
    expected: 'some private-use characters left free',
    got: 'content that uses nearly all of them',
    remedy: 'remove them from the content',
  });
}

/** Marks whole control tokens, and at either end (trimmed too) the longest part that could be joined to one. */
function markRisky(text: string, controlTokens: readonly string[], mark: Mark): string {
  const ranges: [number, number][] = [];
  for (const token of controlTokens) {
    for (let at = text.indexOf(token); at >= 0; at = text.indexOf(token, at + 1)) ranges.push([at, at + token.length]);
  }
  for (const end of new Set([text.length, text.trimEnd().length])) {
    const length = longestOverlap(controlTokens, (token, n) => text.slice(0, end).endsWith(token.slice(0, n)));
    ranges.push([end - length, end]);
  }
  for (const start of new Set([0, text.length - text.trimStart().length])) {
    const length = longestOverlap(controlTokens, (token, n) => text.startsWith(token.slice(token.length - n), start));
    ranges.push([start, start + length]);
  }
  let marked = text;
  for (const [start, end] of ranges) {
    if (end > start) marked = marked.slice(0, start) + mark(text.slice(start, end)) + marked.slice(end);
  }
  return marked;
}

function longestOverlap(tokens: readonly string[], matches: (token: string, length: number) => boolean): number {
  let longest = 0;
  for (const token of tokens) {
    for (let length = token.length - 1; length > longest; length--) if (matches(token, length)) longest = length;
  }
  return longest;
}

interface Marks {
  /** For texts. */
  readonly content: Mark;
  /** For what templates compare: keys, and values of `type`. */
  readonly other: Mark;
}

function markValue(value: JsonValue, marks: Marks): JsonValue {
  if (typeof value === 'string') return marks.content(value);
  if (typeof value !== 'object' || value === null || value instanceof JsonNumber) return value;
  if (value instanceof JsonObject) return new JsonObject(markEntries(value.entries, marks, false));
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map((item) => markValue(item, marks)); // true: an array
  return markRecord(value as Readonly<Record<string, JsonValue>>, marks, false); // true: all that is left
}

function markRecord(
  record: Readonly<Record<string, JsonValue>>,
  marks: Marks,
  isMessage: boolean,
): Record<string, JsonValue> {
  return Object.fromEntries(markEntries(Object.entries(record), marks, isMessage));
}

function markEntries(
  entries: JsonObject['entries'],
  marks: Marks,
  isMessage: boolean,
): (readonly [string, JsonValue])[] {
  return entries.map(([key, value]) => {
    if (isMessage && key === 'role') return [key, value]; // checked to be a plain word
    const deeper = key === 'type' ? { content: marks.other, other: marks.other } : marks;
    return [marks.other(key), markValue(value, deeper)];
  });
}
