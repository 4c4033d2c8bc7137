/** Tokens of a rendered chat, with what belongs to whom. */
import type { RenderedChat, Tokenizer } from '../tokenizer.js';
import type { CharacterRange } from './message-ranges.js';
import type { RenderedMessages, TokenSpan, TurnSpan } from './renderer.js';

/** Characters of a turn that the model produces. */
export interface Produced extends CharacterRange {
  readonly message: number;
}

export interface TokensOptions {
  readonly tokenizer: Tokenizer;
  /** Of the messages, in order. */
  readonly ranges: readonly CharacterRange[];
  /** In order, apart from each other. */
  readonly produced: readonly Produced[];
  readonly drawn: ReadonlyMap<number, ArrayLike<number>> | undefined;
}

/** A stretch that is encoded by itself. */
interface Stretch extends CharacterRange {
  readonly firstToken: number;
  readonly ids: readonly number[];
}

export function tokensOf(
  chat: RenderedChat,
  { tokenizer, ranges, produced, drawn }: TokensOptions,
): Pick<RenderedMessages, 'tokens' | 'spans' | 'turns' | 'producedMask'> {
  const tokens: number[] = [];
  const stretches: Stretch[] = [];
  const turns: TurnSpan[] = [];
  let at = 0;
  const append = (end: number, given?: readonly number[]): void => {
    const ids = given ?? chat.encode(at, end);
    stretches.push({ start: at, end, firstToken: tokens.length, ids });
    for (const id of ids) tokens.push(id);
    at = end;
  };
  for (const { message, start, end } of produced) {
    append(start);
    const written = { text: chat.text.slice(start, end), ids: () => chat.encode(start, end) };
    const given = drawnIds(tokenizer, drawn?.get(message), written);
    const first = tokens.length;
    append(end, given);
    turns.push({ message, start: first, end: tokens.length, asDrawn: given !== undefined });
  }
  append(chat.text.length);
  const producedMask = new Array<boolean>(tokens.length).fill(false);
  for (const { start, end } of turns) producedMask.fill(true, start, end);
  const tokenAt = (character: number): number => {
    const stretch = stretches.find(({ end }) => character < end);
    if (stretch === undefined) return tokens.length;
    if (character <= stretch.start) return stretch.firstToken;
    return stretch.firstToken + Math.min(stretch.ids.length, chat.encode(stretch.start, character).length);
  };
  const spans: TokenSpan[] = ranges.map(({ start, end }) => ({ start: tokenAt(start), end: tokenAt(end) }));
  return { tokens, spans, turns, producedMask };
}

/** The ids that were drawn, if they say what the template writes: a turn that was cut has no end of its own, so that is added. */
function drawnIds(
  tokenizer: Tokenizer,
  drawn: ArrayLike<number> | undefined,
  { text, ids }: { readonly text: string; readonly ids: () => readonly number[] },
): readonly number[] | undefined {
  if (drawn === undefined) return undefined;
  const own = Array.from(drawn);
  const said = tokenizer.decode(own, { skipSpecialTokens: false });
  if (said === text) return own;
  if (!text.startsWith(said)) return undefined;
  const end = ids().slice(-1);
  return said + tokenizer.decode(end, { skipSpecialTokens: false }) === text ? [...own, ...end] : undefined;
}
