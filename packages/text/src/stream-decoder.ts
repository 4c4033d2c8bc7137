/** Text out of a stream of tokens, in whole characters. */

/** Push token ids one at a time; what comes back is ready to show. Pieces and the flush together are the decoded text. */
export interface StreamDecoder {
  /** The text that this token completes; empty while a character is still unfinished. Never half a character. */
  push(id: number): string;
  /** What is left, with U+FFFD for an unfinished character; the decoder is then as new. */
  flush(): string;
}

/**
 * For vocabularies whose tokens are bytes: an incremental UTF-8 decoder.
 *
 * @param bytesOf bytes of a token; empty for tokens that are not shown
 */
export function byteStreamDecoder(bytesOf: (id: number) => Uint8Array): StreamDecoder {
  let decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  return {
    push: (id) => decoder.decode(bytesOf(id), { stream: true }),
    flush: () => {
      const rest = decoder.decode();
      decoder = new TextDecoder('utf-8', { ignoreBOM: true });
      return rest;
    },
  };
}

/**
 * For other vocabularies, where a token's text depends on its neighbours: decodes a window of the last tokens with and
 * without the new one, and emits the difference once it doesn't end within a character.
 */
export function windowStreamDecoder(decode: (ids: readonly number[]) => string): StreamDecoder {
  let settled: number[] = []; // already shown; gives the new ones their context
  let pending: number[] = [];
  const difference = (): string => decode([...settled, ...pending]).slice(decode(settled).length);
  return {
    push(id) {
      pending.push(id);
      const text = difference();
      if (text === '' || text.endsWith('\ufffd')) return '';
      settled = pending;
      pending = [];
      return text;
    },
    flush() {
      const text = pending.length === 0 ? '' : difference();
      settled = [];
      pending = [];
      return text;
    },
  };
}
