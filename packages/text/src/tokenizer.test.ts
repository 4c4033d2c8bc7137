import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { LoopwrightError } from '@loopwright/protocol';
import { describe, expect, it } from 'vitest';
import { loadTokenizer } from './tokenizer.js';

const folder = fileURLToPath(new URL('../../testkit/fixtures/tokenizer/', import.meta.url));
const read = (name: string): string => readFileSync(folder + name, 'utf8');

interface EncodeRow {
  readonly kind: string;
  readonly text: string;
  readonly ids: number[];
  readonly decoded?: string;
  readonly decoded_skip_special?: string;
  readonly ids_specials_as_text?: number[];
}
interface StreamRow {
  readonly name: string;
  readonly ids: number[];
  readonly pieces: string[];
  readonly flush: string;
  readonly text: string;
}

const { strings } = JSON.parse(read('encode.json')) as { strings: EncodeRow[] };
const { streams } = JSON.parse(read('streaming.json')) as { streams: StreamRow[] };
const tokenizerJson = gunzipSync(readFileSync(`${folder}smollm2/tokenizer.json.gz`)).toString();
const tokenizer = loadTokenizer({ tokenizerJson, tokenizerConfigJson: read('smollm2/tokenizer_config.json') });

describe('the tokenizer of SmolLM2', () => {
  it('knows its size, its end of sequence and its template', () => {
    expect(tokenizer.vocabSize).toBe(49152);
    expect(tokenizer.eosTokenIds).toEqual([2]);
    expect(tokenizer.hasChatTemplate).toBe(true);
  });

  it('encodes all 287 reference strings to the reference ids', () => {
    expect(strings).toHaveLength(287);
    for (const row of strings) {
      expect(tokenizer.encode(row.text, { parseSpecialTokens: true }), row.text).toEqual(row.ids);
      expect(tokenizer.encode(row.text, { parseSpecialTokens: true, addSpecialTokens: true })).toEqual(row.ids);
    }
  });

  it('encodes control tokens written in content as plain text', () => {
    for (const row of strings) {
      expect(tokenizer.encode(row.text), row.text).toEqual(row.ids_specials_as_text ?? row.ids);
    }
  });

  it('decodes with and without control tokens', () => {
    for (const row of strings) {
      const text = row.decoded ?? row.text;
      expect(tokenizer.decode(row.ids, { skipSpecialTokens: false })).toBe(text);
      expect(tokenizer.decode(row.ids)).toBe(row.decoded_skip_special ?? text);
    }
  });

  it('decodes typed arrays, nothing for ids beyond the vocabulary, and refuses what is no id', () => {
    expect(tokenizer.decode(Int32Array.of(19556, 28, 49200, 905))).toBe('Hello, world');
    expect(tokenizer.decode([])).toBe('');
    expect(() => tokenizer.decode([19556, -1])).toThrow('ids[1]: expected a token id, got -1');
    expect(() => tokenizer.decode([1.5])).toThrow(LoopwrightError);
  });
});

describe('streamed text', () => {
  it.each(streams)('of $name comes in whole characters', ({ name, ids, pieces, flush, text }) => {
    const decoder = tokenizer.streamDecoder({ skipSpecialTokens: false });
    const got = ids.map((id) => decoder.push(id));
    const rest = decoder.flush();
    if (name === 'surrogate_bytes') {
      expect(got.join('') + rest).toBe(text);
    } else {
      expect([...got, rest]).toEqual([...pieces, flush]);
    }
  });

  it('equals the decoded text, and begins anew after a flush', () => {
    const decoder = tokenizer.streamDecoder();
    for (const { ids } of strings) {
      const streamed = ids.map((id) => decoder.push(id)).join('') + decoder.flush();
      expect(streamed).toBe(tokenizer.decode(ids));
    }
  });
});

const sentencepiece = {
  model: {
    type: 'BPE',
    byte_fallback: true,
    unk_token: '<unk>',
    vocab: {
      '<unk>': 0,
      '<s>': 1,
      '</s>': 2,
      '▁': 3,
      a: 4,
      b: 5,
      '▁a': 6,
      '<0xF0>': 7,
      '<0x9F>': 8,
      '<0x98>': 9,
      '<0x80>': 10,
    },
    merges: [['▁', 'a']],
  },
  pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'first' },
  decoder: {
    type: 'Sequence',
    decoders: [
      { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
      { type: 'ByteFallback' },
      { type: 'Fuse' },
      { type: 'Strip', content: ' ', start: 1, stop: 0 },
    ],
  },
  post_processor: {
    type: 'TemplateProcessing',
    single: [{ SpecialToken: { id: '<s>', type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }],
    pair: [],
    special_tokens: { '<s>': { id: '<s>', ids: [1], tokens: ['<s>'] } },
  },
  added_tokens: [
    { id: 0, content: '<unk>', special: true },
    { id: 1, content: '<s>', special: true },
    { id: 2, content: '</s>', special: true },
    { id: 11, content: '<tool>', special: false, normalized: false },
    { id: 12, content: '[sep]', special: true, lstrip: true, rstrip: true },
    { id: 13, content: 'cat', special: true, single_word: true },
  ],
};

describe('a tokenizer with byte fallback and a word mark', () => {
  const small = loadTokenizer({ tokenizerJson: sentencepiece, generationConfigJson: { eos_token_id: [2, 11] } });

  it('takes the ids that end a generation from its generation config', () => {
    expect(small.eosTokenIds).toEqual([2, 11]);
  });

  it('marks only the beginning of the input as a word', () => {
    expect(small.encode('a</s>a', { parseSpecialTokens: true })).toEqual([6, 2, 4]);
  });

  it('adds what its post-processor adds, on request', () => {
    expect(small.encode('a', { addSpecialTokens: true })).toEqual([1, 6]);
    expect(small.encode('', { addSpecialTokens: true })).toEqual([1]);
  });

  it('keeps the rules of added tokens: white space beside them, and words of their own', () => {
    expect(small.encode('a [sep] b', { parseSpecialTokens: true })).toEqual([6, 12, 5]);
    expect(small.encode('a cat', { parseSpecialTokens: true }).at(-1)).toBe(13);
    expect(small.encode('acats', { parseSpecialTokens: true })).not.toContain(13);
    expect(small.encode('a<tool>')).toEqual([6, 11]);
  });

  it('decodes and streams characters made of byte tokens', () => {
    const ids = [6, 7, 8, 9, 10, 3, 5, 6];
    expect(small.decode(ids)).toBe('a😀 b a');
    const decoder = small.streamDecoder();
    const pieces = ids.map((id) => decoder.push(id));
    expect(pieces).toEqual(['a', '', '', '', '😀', ' ', 'b', ' a']);
    expect(small.decode([6, 7, 8])).toBe('a\ufffd\ufffd');
  });
});

describe('malformed files', () => {
  const parsed = JSON.parse(tokenizerJson) as Record<string, unknown>;
  const bad: [string, Parameters<typeof loadTokenizer>[0], string][] = [
    ['cut text', { tokenizerJson: tokenizerJson.slice(0, 5000) }, 'tokenizerJson: expected JSON'],
    ['a list', { tokenizerJson: '[]' }, 'tokenizerJson: expected a JSON object'],
    ['no model', { tokenizerJson: {} }, 'tokenizerJson.model: expected an object'],
    ['a model of another kind', { tokenizerJson: { model: { type: 'X' } } }, 'tokenizerJson.model.type'],
    ['an empty vocabulary', { tokenizerJson: { model: { type: 'BPE', vocab: {}, merges: [] } } }, 'at least one token'],
    ['a negative id', { tokenizerJson: { model: { type: 'BPE', vocab: { a: -1 }, merges: [] } } }, 'a token id from 0'],
    ['a broken merge', { tokenizerJson: { model: { type: 'BPE', vocab: { a: 0 }, merges: ['a'] } } }, 'merges[0]'],
    [
      'an added token without text',
      { tokenizerJson: { ...parsed, added_tokens: [{ id: 0 }] } },
      'added_tokens[0].content',
    ],
    [
      'an unknown pre-tokenizer',
      { tokenizerJson: { ...parsed, pre_tokenizer: { type: 'Odd' } } },
      'components that this version knows',
    ],
    ['an unknown decoder', { tokenizerJson: { ...parsed, decoder: 7 } }, 'tokenizerJson: expected components'],
    ['deep nesting', { tokenizerJson: `${'['.repeat(100)}${']'.repeat(100)}` }, 'nesting of at most 64'],
    [
      'deep nesting in the config',
      { tokenizerJson, tokenizerConfigJson: `{"a":${'{"b":'.repeat(70)}1${'}'.repeat(71)}` },
      'tokenizerConfigJson: expected nesting',
    ],
    [
      'a config above its limit',
      { tokenizerJson, tokenizerConfigJson: `{"a":"${'x'.repeat(4_000_000)}"}` },
      'at most 4000000 characters',
    ],
    [
      'a template that does not parse',
      { tokenizerJson, chatTemplate: '{% if %}' },
      'chat_template: expected a Jinja template',
    ],
    [
      'a template above its limit',
      { tokenizerJson, chatTemplate: 'x'.repeat(1_000_001) },
      'at most 1000000 characters',
    ],
    [
      'an end-of-sequence id out of range',
      { tokenizerJson, generationConfigJson: { eos_token_id: -2 } },
      'generationConfigJson.eos_token_id',
    ],
  ];
  it.each(bad)('%s: refused with what to do', (_name, sources, message) => {
    let caught: unknown;
    try {
      loadTokenizer(sources);
    } catch (error) {
      caught = error;
    }
    expect(caught).toMatchObject({ code: 'model_invalid' });
    expect((caught as LoopwrightError).message).toContain(message);
    expect((caught as LoopwrightError).details.remedy).toBeTruthy();
  });
});
