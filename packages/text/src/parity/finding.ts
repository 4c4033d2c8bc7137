/** What a check came to. */
import type { Difference } from './difference.js';

/**
 * `text`: a renderer writes what the template writes. `tokens`: they are those of that text, and give it back. `content`: what messages say has not become a control token.
 * `turns`: each turn of the model ends with a token that sampling stops at. `prefix`: what was sampled stands unchanged in the next prompt. `parse`: a turn, read back,
 * is the message that it was rendered from. `reference-text` and `reference-tokens`: the same as another program made.
 */
export type CheckName =
  | 'text'
  | 'tokens'
  | 'content'
  | 'turns'
  | 'prefix'
  | 'parse'
  | 'reference-text'
  | 'reference-tokens';

/**
 * `different`: a fault. `not-comparable`: nothing to compare, for the reason that is given. `noted`: the template's own way, which is to be known.
 */
export type Outcome =
  | { readonly status: 'same' }
  | { readonly status: 'different'; readonly reason: string; readonly difference?: Difference }
  | { readonly status: 'not-comparable' | 'noted'; readonly reason: string };

export type Finding = { readonly case: string; readonly check: CheckName } & Outcome;

export const same: Outcome = { status: 'same' };
export const notComparable = (reason: string): Outcome => ({ status: 'not-comparable', reason });
export const noted = (reason: string): Outcome => ({ status: 'noted', reason });
export const different = (reason: string, difference?: Difference): Outcome => ({
  status: 'different',
  reason,
  ...(difference === undefined ? {} : { difference }),
});
