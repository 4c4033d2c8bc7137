/** The batches of a loop of one's own: each epoch all items, in an order of its own that the seed decides. */
import { complaint } from '@loopwright/protocol';
import { createRandom } from '../random.js';
import { wholeNumber } from './options.js';

export interface ShuffledBatchesOptions {
  /** Items of a step. */
  readonly batchSize: number;
  /** Order of the items. */
  readonly seed: number;
}

/**
 * What a step trains on, by its number from 1: the same items whenever it is asked, so that a run that goes on needs to keep no more than the step. All
 * batches are of one size: what is left at the end of an epoch comes again in the next, in another place. Fewer items than a batch are one.
 *
 * @throws `invalid_argument` for no items, or a size that is no whole number from 1
 * @example
 * const batchOf = shuffledBatches(pairs, { batchSize: 8, seed: 1 });
 * for await (const step of resumableSteps({ loop: 'dpo', steps, checkpoints, signal })) {
 *   const pass = training.forwardBackwardCustom(batchOf(step).flat(), loss);
 *   await Promise.all([pass, training.optimStep({ learningRate })]);
 * }
 */
export function shuffledBatches<T>(
  items: readonly T[],
  { batchSize, seed }: ShuffledBatchesOptions,
): (step: number) => readonly T[] {
  wholeNumber('batchSize', batchSize, 1);
  if (items.length === 0)
    throw complaint({ field: 'items', expected: 'one at least', got: 'none', remedy: 'give what is to be trained on' });
  const stepsPerEpoch = Math.max(1, Math.floor(items.length / batchSize));
  const random = createRandom(seed);
  // All orders come from one stream, those of epochs that are over too.
  const orders: (readonly T[])[] = [];
  return (step) => {
    wholeNumber('step', step, 1);
    const epoch = Math.floor((step - 1) / stepsPerEpoch);
    while (orders.length <= epoch) orders.push(random.shuffle(items));
    const at = (step - 1) % stepsPerEpoch;
    return orders[epoch]!.slice(at * batchSize, (at + 1) * batchSize);
  };
}
