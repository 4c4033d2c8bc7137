import { expect, test } from 'vitest';
import { loadTokenizer } from './tokenizer.js';
import { withinTime } from './within-time.js';

/** A tokenizer whose words are found by an expression. */
function tokenizerJson(expression: string): string {
  return JSON.stringify({
    model: { type: 'BPE', vocab: { a: 0, b: 1, '!': 2 }, merges: [] },
    pre_tokenizer: { type: 'Split', pattern: { Regex: expression }, behavior: 'Isolated', invert: false },
    decoder: {
      type: 'Sequence',
      decoders: [{ type: 'Fuse' }, { type: 'Replace', pattern: { Regex: '(a|aa)+$' }, content: 'x' }],
    },
  });
}

const hostileText = `${'a'.repeat(60)}!`;
const bounded = withinTime(100);

test('an expression that would backtrack for years is stopped, and the tokenizer goes on', () => {
  const tokenizer = loadTokenizer({ tokenizerJson: tokenizerJson('(a+)+b'), bounded });
  expect(() => tokenizer.encode(hostileText)).toThrow(
    'tokenizer.json: expected expressions that read a text within 0.1 s',
  );
  expect(tokenizer.encode('ab')).toEqual([0, 1]);
});

test('so is one that a decoder has', () => {
  const tokenizer = loadTokenizer({ tokenizerJson: tokenizerJson('b'), bounded });
  const ids = [...Array.from({ length: 60 }, () => 0), 1, 2];
  expect(() => tokenizer.decode(ids)).toThrow('within 0.1 s');
});

test('errors of the work pass, and work within work has its result', () => {
  expect(bounded(() => bounded(() => 1) + 1)).toBe(2);
  expect(() =>
    bounded(() => {
      throw new RangeError('own');
    }),
  ).toThrow(RangeError);
});
