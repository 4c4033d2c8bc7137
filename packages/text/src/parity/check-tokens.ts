/** The tokens of a rendering against those of its whole text, control tokens in it read as such: what transformers trains on. */
import type { RenderedMessages, Renderer } from '../renderers/renderer.js';
import { textDifference, tokenDifference } from './difference.js';
import { different, notComparable, noted, type Outcome, same } from './finding.js';

export interface CheckTokensOptions {
  /** Content of the chat looks like control tokens. */
  readonly isForged: boolean;
  /** Ids that another program made of the text; default those of our own tokenizer. */
  readonly reference?: readonly number[];
}

export function checkTokens(
  { tokenizer }: Renderer,
  { text, tokens, turns }: RenderedMessages,
  { isForged, reference }: CheckTokensOptions,
): Outcome {
  const decode = (ids: readonly number[]): string => tokenizer.decode(ids, { skipSpecialTokens: false });
  const whole = tokenizer.encode(text, { parseSpecialTokens: true });
  const other = reference === undefined ? undefined : tokenDifference(reference, whole, (id) => decode([id]));
  if (other !== undefined) return different('other tokens for the same text', other);
  const gone = textDifference(text, decode(tokens));
  if (gone !== undefined) {
    if (decode(whole) !== text) return noted('this vocabulary does not give every text back');
    return different('tokens that give other text back', gone);
  }
  if (isForged) return notComparable('transformers reads control tokens in content; here content is text');
  const found = tokenDifference(whole, tokens, (id) => decode([id]));
  if (found === undefined) return same;
  // A turn is encoded by itself, since sampling begins there.
  const edges = [...turns.flatMap(({ start, end }) => [start, end]), tokens.length];
  const parts = edges.map((at, i) => decode(tokens.slice(edges[i - 1] ?? 0, at)));
  const apart = parts.flatMap((part) => tokenizer.encode(part, { parseSpecialTokens: true }));
  return apart.join() === tokens.join()
    ? noted('a token of the whole text reaches over the edge of a turn; turns are encoded apart, as they are sampled')
    : different('other tokens than those of the text', found);
}
