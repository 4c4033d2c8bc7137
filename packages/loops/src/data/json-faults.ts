/** The first fault of a text that should be one JSON object, with its place: what `JSON.parse` doesn't tell or lets pass. */
import type { RowFault } from './row.js';

/** Nesting of a row; what is real stays below 20. */
export const maxDepth = 64;

class Fault extends Error {
  readonly fault: RowFault;
  constructor(fault: RowFault) {
    super(fault.expected);
    this.fault = fault;
  }
}

/**
 * Reads strictly (RFC 8259), and further finds keys that are there twice, integers and numbers that a double can't hold, and halves
 * of surrogate pairs: what a parser would change without a word.
 *
 * @returns undefined for a text without fault
 */
export function findJsonFault(text: string): RowFault | undefined {
  try {
    new Scanner(text).document();
    return undefined;
  } catch (error) {
    if (error instanceof Fault) return error.fault;
    throw error;
  }
}

class Scanner {
  readonly #text: string;
  #at = 0;
  readonly #path: string[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  document(): void {
    this.#space();
    if (this.#text[this.#at] !== '{') this.#fail('a JSON object', this.#seen());
    this.#value();
    this.#space();
    if (this.#at < this.#text.length)
      this.#fail('nothing after the object', this.#seen(), 'put each object on its own line');
  }

  #value(): void {
    this.#space();
    if (this.#path.length > maxDepth) this.#fail(`at most ${maxDepth} levels of nesting`, 'more');
    switch (this.#text[this.#at]) {
      case '{':
        this.#object();
        return;
      case '[':
        this.#list();
        return;
      case '"':
        this.#string();
        return;
      default:
        this.#scalar();
    }
  }

  #object(): void {
    const keys = new Set<string>();
    this.#at += 1;
    this.#space();
    if (this.#skip('}')) return;
    for (;;) {
      this.#space();
      const start = this.#at;
      if (this.#text[start] !== '"') this.#fail('a key in double quotes', this.#seen());
      const key = this.#string();
      this.#path.push(/^\w{1,60}$/.test(key) ? `.${key}` : `[a key of ${key.length} characters]`);
      if (keys.has(key)) this.#fail('each key once', 'a key that is there twice', 'keep one of the two', start);
      keys.add(key);
      this.#space();
      if (!this.#skip(':')) this.#fail('a colon after the key', this.#seen());
      this.#value();
      this.#path.pop();
      this.#space();
      if (this.#skip('}')) return;
      if (!this.#skip(',')) this.#fail('a comma or the end of the object', this.#seen());
    }
  }

  #list(): void {
    this.#at += 1;
    this.#space();
    if (this.#skip(']')) return;
    for (let i = 0; ; i++) {
      this.#path.push(`[${i}]`);
      this.#value();
      this.#path.pop();
      this.#space();
      if (this.#skip(']')) return;
      if (!this.#skip(',')) this.#fail('a comma or the end of the list', this.#seen());
    }
  }

  #string(): string {
    const start = this.#at;
    const end = endOfCharacters(this.#text, start + 1);
    if (this.#text[end] !== '"') return this.#brokenString(end);
    const quoted = this.#text.slice(start, end + 1);
    const string = JSON.parse(quoted) as string; // true: it was scanned as a string
    if (/\p{Surrogate}/u.test(string)) {
      this.#fail('whole surrogate pairs', 'half of one', 'write the character itself, or leave it out');
    }
    this.#at += quoted.length;
    return string;
  }

  #brokenString(end: number): never {
    this.#at = end;
    if (this.#at >= this.#text.length)
      this.#fail('a quote that ends the string', 'the end of the line', 'complete the line');
    if (this.#text[this.#at] === '\\') this.#fail('an escape that JSON has', 'another');
    this.#fail('a string without control characters', 'one', 'write \\n, \\t or \\u00XX');
  }

  #scalar(): void {
    const words = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.+-])|(?:true|false|null)(?!\w)/y;
    words.lastIndex = this.#at;
    const [word] = words.exec(this.#text) ?? [];
    if (word === undefined) {
      const [other] = /^-?(?:NaN|Infinity)\b/.exec(this.#text.slice(this.#at, this.#at + 12)) ?? [];
      if (other !== undefined)
        this.#fail('a JSON value', other, 'JSON has no such number: leave the row or the field out');
      this.#fail('a JSON value', this.#seen());
    }
    if (/^-?\d/.test(word)) {
      const number = Number(word);
      if (!Number.isFinite(number)) this.#fail('a number of at most 1.8e308', 'a larger one');
      if (/^-?\d+$/.test(word) && !Number.isSafeInteger(number)) {
        this.#fail('an integer of at most 2^53 - 1', 'a larger one, which would be rounded', 'write it as a text');
      }
    }
    this.#at += word.length;
  }

  #space(): void {
    const spaces = /[ \t\r\n]*/y;
    spaces.lastIndex = this.#at;
    this.#at += spaces.exec(this.#text)?.[0].length ?? 0;
  }

  #skip(char: string): boolean {
    if (this.#text[this.#at] !== char) return false;
    this.#at += 1;
    return true;
  }

  /** What stands here, by kind. */
  #seen(): string {
    const char = this.#text[this.#at];
    if (char === undefined) return 'the end of the line';
    const kinds: readonly (readonly [RegExp, string])[] = [
      [/[{}[\],:]/, `a ${char}`],
      [/"/, 'a string'],
      [/'/, 'a single quote'],
      [/[\d-]/, 'a number'],
      [/[a-zA-Z]/, 'a word without quotes'],
    ];
    return kinds.find(([pattern]) => pattern.test(char))?.[1] ?? 'another character';
  }

  #fail(expected: string, got: string, remedy?: string, index = this.#at): never {
    const field = this.#path.join('').replace(/^\./, '');
    throw new Fault({
      index,
      ...(field === '' ? {} : { field }),
      expected,
      got,
      ...(remedy === undefined ? {} : { remedy }),
    });
  }
}

const escapes = /["\\/bfnrt]|u[0-9a-fA-F]{4}/y;

/** Where the characters of a string end: at its quote, the first fault, or the end of the line. A loop, for strings of any length. */
function endOfCharacters(text: string, start: number): number {
  for (let at = start; at < text.length; at++) {
    const char = text[at]!;
    if (char === '"' || char < ' ') return at;
    if (char !== '\\') continue;
    escapes.lastIndex = at + 1;
    const [escaped] = escapes.exec(text) ?? [];
    if (escaped === undefined) return at;
    at += escaped.length;
  }
  return text.length;
}
