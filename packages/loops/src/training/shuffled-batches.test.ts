import { describe, expect, it } from 'vitest';
import { createRandom } from '../random.js';
import { shuffledBatches } from './shuffled-batches.js';

describe('shuffled batches', () => {
  const items = Array.from({ length: 10 }, (_, i) => i);

  it('take each item once an epoch at most, in orders that are drawn one after the other', () => {
    const batchOf = shuffledBatches(items, { batchSize: 3, seed: 4 });
    const random = createRandom(4);
    for (const epoch of [0, 1, 2]) {
      const order = random.shuffle(items);
      const own = [1, 2, 3].map((at) => batchOf(3 * epoch + at));
      expect(own).toEqual([order.slice(0, 3), order.slice(3, 6), order.slice(6, 9)]);
    }
  });

  it('are the same for a run that goes on in the middle of a later epoch', () => {
    const whole = shuffledBatches(items, { batchSize: 3, seed: 4 });
    const all = Array.from({ length: 9 }, (_, i) => whole(i + 1));
    expect(shuffledBatches(items, { batchSize: 3, seed: 4 })(8)).toEqual(all[7]);
    expect(whole(2)).toEqual(all[1]);
  });

  it('are all items where there are fewer than a batch', () => {
    expect(shuffledBatches([7], { batchSize: 4, seed: 0 })(3)).toEqual([7]);
  });

  it('of nothing, or of no size, are refused', () => {
    expect(() => shuffledBatches([], { batchSize: 1, seed: 0 })).toThrow('items: expected one at least, got none');
    expect(() => shuffledBatches([1], { batchSize: 0, seed: 0 })).toThrow('batchSize');
    expect(() => shuffledBatches([1], { batchSize: 1, seed: 0 })(0)).toThrow('step');
  });
});
