import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { LoopwrightError, type NumberArray } from '@loopwright/protocol';
import { loadTokenizer } from '@loopwright/text';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { characterTokenizer } from '../testing/bandit.js';
import { agreement } from './agreement.js';
import { explain } from './explain.js';
import { type RlDatumOptions, rlDatum } from './rl-datum.js';
import { type SftDatumOptions, sftDatum, sftDatumFromMessages } from './sft-datum.js';

/** Values of an (N) input. */
function flat(values: NumberArray): number[] {
  return Array.from<number | readonly number[]>(values).flat();
}

function refusal(make: () => unknown): LoopwrightError {
  try {
    make();
  } catch (error) {
    if (LoopwrightError.isInstance(error)) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

describe('rlDatum', () => {
  const sequence = { tokens: [8, 9], logprobs: [-0.5, -1.5] };

  it('shifts the targets and leaves the prompt without weight', () => {
    expect(rlDatum({ prompt: [5, 6, 7], sequence, advantage: 0.25 })).toEqual({
      modelInput: [5, 6, 7, 8],
      lossFnInputs: {
        targetTokens: [6, 7, 8, 9],
        weights: [0, 0, 1, 1],
        logprobs: [0, 0, -0.5, -1.5],
        advantages: [0, 0, 0.25, 0.25],
      },
    });
  });

  it('takes one advantage for each token, and typed arrays', () => {
    const datum = rlDatum({
      prompt: Int32Array.of(5),
      sequence: { tokens: Int32Array.of(8, 9), logprobs: Float32Array.of(-0.5, -1.5) },
      advantage: [1, -1],
    });
    expect(datum.modelInput).toEqual([5, 8]);
    expect(datum.lossFnInputs).toEqual({
      targetTokens: [8, 9],
      weights: [1, 1],
      logprobs: [-0.5, -1.5],
      advantages: [1, -1],
    });
  });

  it('keeps all its rows as long as the model input', () => {
    const ids = fc.array(fc.nat(50_000), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(ids, ids, (prompt, tokens) => {
        const { modelInput, lossFnInputs } = rlDatum({
          prompt,
          sequence: { tokens, logprobs: tokens.map(() => -1) },
          advantage: 2,
        });
        const whole = [...prompt, ...tokens];
        expect([modelInput[0], ...flat(lossFnInputs.targetTokens)]).toEqual(whole);
        for (const row of Object.values(lossFnInputs)) expect(row).toHaveLength(whole.length - 1);
        expect(flat(lossFnInputs.weights).filter((w) => w === 1)).toHaveLength(tokens.length);
      }),
    );
  });

  const bad: [string, RlDatumOptions, string][] = [
    ['an empty prompt', { prompt: [], sequence, advantage: 1 }, 'prompt'],
    ['an empty answer', { prompt: [1], sequence: { tokens: [], logprobs: [] }, advantage: 1 }, 'sequence.tokens'],
    [
      'one logprob too few',
      { prompt: [1], sequence: { tokens: [8, 9], logprobs: [-1] }, advantage: 1 },
      'sequence.logprobs',
    ],
    [
      'a logprob that is NaN',
      { prompt: [1], sequence: { tokens: [8], logprobs: [Number.NaN] }, advantage: 1 },
      'sequence.logprobs[0]',
    ],
    ['an infinite advantage', { prompt: [1], sequence, advantage: Number.POSITIVE_INFINITY }, 'advantage'],
    ['one advantage too many', { prompt: [1], sequence, advantage: [1, 2, 3] }, 'advantage'],
    ['a missing advantage', { prompt: [1], sequence, advantage: undefined as unknown as number }, 'advantage'],
    ['half a token', { prompt: [1.5], sequence, advantage: 1 }, 'prompt[0]'],
    [
      'a negative token',
      { prompt: [1], sequence: { tokens: [-1], logprobs: [0] }, advantage: 1 },
      'sequence.tokens[0]',
    ],
  ];
  it.each(bad)('refuses %s', (_name, options, field) => {
    const error = refusal(() => rlDatum(options));
    expect(error.code).toBe('invalid_argument');
    expect(error.details).toMatchObject({
      field,
      expected: expect.any(String),
      got: expect.any(String),
      remedy: expect.any(String),
    });
  });
});

describe('sftDatum', () => {
  it('has loss on the completion only', () => {
    expect(sftDatum({ prompt: [5, 6], completion: [7, 2] })).toEqual({
      modelInput: [5, 6, 7],
      lossFnInputs: { targetTokens: [6, 7, 2], weights: [0, 1, 1] },
    });
    expect(sftDatum({ prompt: [5], completion: [7, 2], weights: [0.5, 2] }).lossFnInputs.weights).toEqual([0.5, 2]);
  });

  const bad: [string, SftDatumOptions, string][] = [
    ['an empty prompt', { prompt: [], completion: [1] }, 'prompt'],
    ['an empty completion', { prompt: [1], completion: [] }, 'completion'],
    ['one weight too few', { prompt: [1], completion: [1, 2], weights: [1] }, 'weights'],
    ['a weight that is NaN', { prompt: [1], completion: [1], weights: [Number.NaN] }, 'weights[0]'],
  ];
  it.each(bad)('refuses %s', (_name, options, field) => {
    expect(refusal(() => sftDatum(options)).details.field).toBe(field);
  });
});

describe('sftDatumFromMessages', () => {
  const folder = fileURLToPath(new URL('../../../testkit/fixtures/tokenizer/smollm2/', import.meta.url));
  const tokenizer = loadTokenizer({
    tokenizerJson: gunzipSync(readFileSync(`${folder}tokenizer.json.gz`)).toString(),
    tokenizerConfigJson: readFileSync(`${folder}tokenizer_config.json`, 'utf8'),
  });
  const chat = [
    { role: 'user', content: '1+1?' },
    { role: 'assistant', content: '2' },
    { role: 'user', content: '2+2?' },
    { role: 'assistant', content: '4' },
  ];

  it('learns the answers and the token that ends each, and ends there', () => {
    const { modelInput, lossFnInputs } = sftDatumFromMessages(tokenizer, chat);
    const targets = flat(lossFnInputs.targetTokens);
    const learned = targets.filter((_, i) => lossFnInputs.weights[i] === 1);
    expect(tokenizer.decode(learned, { skipSpecialTokens: false })).toBe('2<|im_end|>4<|im_end|>');
    expect(targets.at(-1)).toBe(2);
    expect([modelInput[0], ...targets]).toEqual(tokenizer.applyChatTemplate(chat).slice(0, targets.length + 1));
  });

  it('learns the last answer only, on request', () => {
    const { lossFnInputs } = sftDatumFromMessages(tokenizer, chat, { turns: 'last' });
    expect(flat(lossFnInputs.weights).filter((weight) => weight === 1)).toHaveLength(2);
  });

  it('refuses a chat without an answer', () => {
    expect(refusal(() => sftDatumFromMessages(tokenizer, chat.slice(0, 1))).details.field).toBe('messages');
  });
});

describe('explain', () => {
  const tokenizer = characterTokenizer();

  it('lines up tokens, targets and numbers', () => {
    const prompt = tokenizer.encode('12=');
    const sequence = { tokens: tokenizer.encode('3\n'), logprobs: [-0.25, -1] };
    expect(explain(rlDatum({ prompt, sequence, advantage: 0.5 }), tokenizer).split('\n')).toEqual([
      'position  input   target   weight  advantage  logprob',
      '       0  "1" 1   "2" 2         0          0        0',
      '       1  "2" 2   "=" 10        0          0        0',
      '       2  "=" 10  "3" 3         1     0.5000  -0.2500',
      '       3  "3" 3   "\\n" 16       1     0.5000       -1',
    ]);
  });

  it('puts what the trainer says beside what was sampled', () => {
    const sequence = { tokens: tokenizer.encode('3\n'), logprobs: [-0.25, -1] };
    const datum = rlDatum({ prompt: tokenizer.encode('2='), sequence, advantage: 1 });
    const lines = explain(datum, tokenizer, { trainerLogprobs: [-3, -0.25, -1.5] }).split('\n');
    expect(lines.map((line) => line.split(/ {2,}/).slice(-3))).toEqual([
      ['logprob', 'trainer', 'difference'],
      ['0', '0', '-3'], // advantage, logprob, trainer: a prompt token has no difference
      ['-0.2500', '-0.2500', '0.0e+0'],
      ['-1', '-1.5000', '-5.0e-1'],
    ]);
    const explaining = () => explain(datum, tokenizer, { trainerLogprobs: [-3] });
    expect(refusal(explaining).details).toMatchObject({ field: 'trainerLogprobs', got: '1' });
  });

  it('shows several targets of a position in one cell', () => {
    const datum = { modelInput: [1], lossFnInputs: { targetTokens: [[2, 3]], weights: [[0.5, 1]] } };
    expect(explain(datum, tokenizer)).toContain('"2" 2 | "3" 3');
  });

  it('lets no control character through', () => {
    const text = explain(
      sftDatum({ prompt: tokenizer.encode('x'), completion: tokenizer.encode('\u001b\n') }),
      tokenizer,
    );
    expect(text.replaceAll('\n', '')).not.toMatch(/\p{C}/u);
    expect(text).toContain('\\x1b');
  });
});

describe('agreement', () => {
  const sequence = { tokens: [8, 9, 8], logprobs: [-0.5, -1.5, -2] };
  const datum = rlDatum({ prompt: [5, 6], sequence, advantage: 0.25 });

  it('names the token on which trainer and sampler differ most, the prompt left out', () => {
    expect(agreement(datum, [-7, -0.5, -1.75, -1.9])).toEqual({
      tokens: 3,
      meanDifference: (0.25 + Math.abs(-1.9 + 2)) / 3,
      worst: { position: 2, tokenId: 9, trainer: -1.75, sampler: -1.5, difference: -0.25 },
    });
  });

  it('finds what is not a number worse than any difference, and the first of several', () => {
    expect(agreement(datum, [0, 99, Number.NaN, Number.NEGATIVE_INFINITY]).worst).toMatchObject({ position: 2 });
    expect(agreement(datum, [0, -0.5, -1.5, -2])).toMatchObject({ meanDifference: 0, worst: { position: 1 } });
  });

  it('says nothing of a datum without weights, and refuses numbers of another datum', () => {
    const silent = { ...datum, lossFnInputs: { ...datum.lossFnInputs, weights: [0, 0, 0, 0] } };
    expect(agreement(silent, [1, 2, 3, 4])).toEqual({ tokens: 0, meanDifference: 0 });
    expect(refusal(() => agreement(datum, [1, 2, 3])).details).toMatchObject({ field: 'trainerLogprobs', got: '3' });
  });
});
