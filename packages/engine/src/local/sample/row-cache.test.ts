import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseModelConfig } from '../models/config.js';
import { RowCache } from './row-cache.js';

const config = parseModelConfig(
  {
    model_type: 'llama',
    architectures: ['LlamaForCausalLM'],
    vocab_size: 10,
    hidden_size: 8,
    intermediate_size: 8,
    num_hidden_layers: 2,
    num_attention_heads: 2,
    num_key_value_heads: 2,
    head_dim: 4,
    max_position_embeddings: 2048,
    rms_norm_eps: 1e-5,
    rope_theta: 10_000,
    tie_word_embeddings: true,
  },
  {},
);
const [arrays, heads, width] = [4, 2, 4];

/** One row as lists: by array, head and position the first number of d. */
type Row = number[][][];

type Action =
  | { readonly type: 'join'; readonly lengths: readonly number[] }
  | { readonly type: 'step' }
  | { readonly type: 'leave'; readonly which: number }
  | { readonly type: 'clear' };

const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('join' as const),
      lengths: fc.array(fc.nat(150), { minLength: 1, maxLength: 3 }),
    }),
  },
  { weight: 6, arbitrary: fc.record({ type: fc.constant('step' as const) }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('leave' as const), which: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('clear' as const) }) },
);

function expectSame(cache: RowCache, rows: readonly Row[]): void {
  const T = cache.positions;
  for (let index = 0; index < arrays; index++) {
    const view = cache.view(index, rows.length);
    rows.forEach((row, r) => {
      for (let head = 0; head < heads; head++) {
        row[index]![head]!.forEach((value, position) => {
          const at = ((r * heads + head) * T + position) * width;
          if (view[at] !== value || view[at + width - 1] !== value + 0.5)
            throw new Error(
              `row ${r} array ${index} head ${head} position ${position}: ${view[at]}, expected ${value}`,
            );
        });
      }
    });
  }
}

describe('the cache of keys and values', () => {
  it('holds what a plain list of rows holds, whatever joins, grows and leaves', () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
        const cache = new RowCache(config);
        let rows: Row[] = [];
        let counter = 0;
        const fresh = () => ++counter;
        const put = (values: Float32Array, at: number, value: number) => {
          values.fill(value, at, at + width);
          values[at + width - 1] = value + 0.5;
        };
        for (const next of actions) {
          if (next.type === 'join') {
            cache.reserve(rows.length + next.lengths.length, Math.max(...next.lengths) + 1);
            const stride = Math.ceil(Math.max(...next.lengths, 1) / 16) * 16;
            for (const [b, count] of next.lengths.entries()) {
              const row: Row = Array.from({ length: arrays }, () => Array.from({ length: heads }, () => []));
              for (let index = 0; index < arrays; index++) {
                const source = new Float32Array(next.lengths.length * heads * stride * width);
                const offset = b * heads * stride * width;
                for (let head = 0; head < heads; head++) {
                  for (let position = 0; position < count; position++) {
                    const value = fresh();
                    row[index]![head]!.push(value);
                    put(source, offset + (head * stride + position) * width, value);
                  }
                }
                cache.writePrompt(index, rows.length, source.subarray(offset), { stride, count });
              }
              rows.push(row);
            }
          } else if (next.type === 'step' && rows.length > 0) {
            const lengths = rows.map((row) => row[0]![0]!.length);
            cache.reserve(rows.length, Math.max(...lengths) + 1);
            const step = new Float32Array(rows.length * arrays * heads * width);
            rows.forEach((row, r) => {
              for (let index = 0; index < arrays; index++) {
                for (let head = 0; head < heads; head++) {
                  const value = fresh();
                  row[index]![head]!.push(value);
                  put(step, ((r * arrays + index) * heads + head) * width, value);
                }
              }
            });
            cache.writeStep(step, lengths);
          } else if (next.type === 'leave' && rows.length > 0) {
            const b = next.which % rows.length;
            const last = rows.length - 1;
            if (b !== last) cache.copyRow(last, b);
            rows[b] = rows[last]!;
            rows.pop();
            cache.keepRows(rows.length);
          } else if (next.type === 'clear') {
            cache.clear();
            rows = [];
          }
          expectSame(cache, rows);
        }
      }),
      { seed: 1, numRuns: 150 },
    );
  });

  it('keeps rows in their places when it grows for fewer rows than it had room for', () => {
    const cache = new RowCache(config);
    cache.reserve(6, 10); // room for six, of which two stay
    const source = new Float32Array(heads * 16 * width).fill(3);
    for (const row of [0, 1]) cache.writePrompt(0, row, source, { stride: 16, count: 10 });
    cache.reserve(2, 1000);
    const view = cache.view(0, 2);
    for (const row of [0, 1]) expect(view[(row * heads + 1) * cache.positions * width + 9 * width]).toBe(3);
  });

  it('scrubs NaN and infinity and keeps the rest', () => {
    const cache = new RowCache(config);
    cache.reserve(1, 4);
    const source = new Float32Array(heads * 16 * width).fill(2);
    source[0] = Number.NaN;
    source[1] = Number.NEGATIVE_INFINITY;
    cache.writePrompt(0, 0, source, { stride: 16, count: 4 });
    cache.scrub();
    expect([...cache.view(0, 1).subarray(0, 4)]).toEqual([0, 0, 2, 2]);
  });
});
