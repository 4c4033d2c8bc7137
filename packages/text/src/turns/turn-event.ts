/** What an assistant turn consists of, as it is read out of sampled text. */

export type TurnEvent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  /** A whole, well-formed call of a tool that was offered. `arguments` is the JSON text of an object, as the model wrote it; `id` where it wrote one. */
  | { readonly type: 'tool-call'; readonly name: string; readonly arguments: string; readonly id?: string }
  /** What began as a call and is none: cut, malformed, or of a tool that was not offered. `raw` is its text, marks included. */
  | { readonly type: 'broken-call'; readonly raw: string; readonly reason: BrokenReason };

/**
 * `cut`: the turn ended within it; `not-json`: no JSON object, or something behind it; `doubled-key`: a key twice; `wrong-shape`: without
 * name, or arguments that are no object; `unknown-tool`: not among those offered; `bad-header`: marks in an order that means nothing.
 */
export type BrokenReason = 'cut' | 'not-json' | 'doubled-key' | 'wrong-shape' | 'unknown-tool' | 'bad-header';

/** How a turn ended: `cut` by a limit of length or a stop text, so that what is unfinished stays so. */
export interface TurnEnd {
  readonly cut: boolean;
}

/** Reads a turn piece by piece. Control tokens come apart from text: their spelling in plain text is text. */
export interface TurnParser {
  /** Marks that aren't special, and that it takes as control tokens; default none. */
  readonly uses?: readonly string[];
  text(piece: string): TurnEvent[];
  /** A control token, by its text. */
  control(token: string): TurnEvent[];
  end(how: TurnEnd): TurnEvent[];
}

export const textEvent = (text: string): TurnEvent[] => (text === '' ? [] : [{ type: 'text', text }]);
