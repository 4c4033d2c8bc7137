/** Finding added tokens in text: leftmost, and the longest where several begin at one place. */
import type { AddedTokenFile } from './tokenizer-files.js';

/** A stretch of text, or an added token found in it. */
export type Piece = { readonly type: 'text'; readonly text: string } | { readonly type: 'token'; readonly id: number };

interface TrieNode {
  readonly children: Map<string, TrieNode>;
  token?: AddedTokenFile;
}

const wordCharacter = /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}]/u;

/** Splits text at a fixed set of tokens. */
export class AddedTokenSplitter {
  readonly #root: TrieNode = { children: new Map() };
  readonly #size: number;

  /** `tokens` with their texts as they are to be found (already normalised where that applies). */
  constructor(tokens: readonly AddedTokenFile[]) {
    this.#size = tokens.length;
    for (const token of tokens) {
      let node = this.#root;
      for (let i = 0; i < token.content.length; i++) {
        const unit = token.content.charAt(i);
        let child = node.children.get(unit);
        if (child === undefined) {
          child = { children: new Map() };
          node.children.set(unit, child);
        }
        node = child;
      }
      node.token = token;
    }
  }

  /** Pieces in order; no empty texts. */
  split(text: string): Piece[] {
    if (this.#size === 0) return text === '' ? [] : [{ type: 'text', text }];
    const pieces: Piece[] = [];
    let start = 0;
    const pushText = (end: number): void => {
      if (end > start) pieces.push({ type: 'text', text: text.slice(start, end) });
    };
    for (let at = 0; at < text.length; ) {
      const token = this.#longestAt(text, at);
      if (token === undefined) {
        at += 1;
        continue;
      }
      const end = at + token.content.length;
      const before = token.lstrip ? start + text.slice(start, at).trimEnd().length : at;
      pushText(before);
      pieces.push({ type: 'token', id: token.id });
      start = token.rstrip ? text.length - text.slice(end).trimStart().length : end;
      at = start;
    }
    pushText(text.length);
    return pieces;
  }

  #longestAt(text: string, at: number): AddedTokenFile | undefined {
    let node: TrieNode | undefined = this.#root;
    let found: AddedTokenFile | undefined;
    for (let i = at; i < text.length; i++) {
      node = node.children.get(text.charAt(i));
      if (node === undefined) break;
      if (node.token !== undefined && (!node.token.singleWord || standsAlone(text, at, i + 1))) found = node.token;
    }
    return found;
  }
}

function standsAlone(text: string, start: number, end: number): boolean {
  const before = Array.from(text.slice(Math.max(0, start - 2), start)).at(-1) ?? '';
  const after = String.fromCodePoint(text.codePointAt(end) ?? 0x20);
  return !wordCharacter.test(before) && !wordCharacter.test(after);
}
