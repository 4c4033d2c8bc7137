/** The batches of supervised training: each epoch all examples, in an order of its own that the seed decides. */
import { createRandom } from '../random.js';

/** Where the next batch begins. */
export interface SftPlace {
  /** From 0. */
  readonly epoch: number;
  /** Examples of the epoch that were taken. */
  readonly offset: number;
}

export interface SftBatch<T> {
  readonly examples: readonly T[];
  /** Of the batch, from 0. */
  readonly epoch: number;
  /** Where the one after it begins. */
  readonly next: SftPlace;
}

export interface SftBatchesOptions {
  readonly epochs: number;
  readonly batchSize: number;
  readonly seed: number;
  readonly from: SftPlace;
}

/** The batches from a place on. The last of an epoch may be smaller. */
export function sftBatches<T>(
  data: readonly T[],
  { epochs, batchSize, seed, from }: SftBatchesOptions,
): readonly SftBatch<T>[] {
  const random = createRandom(seed);
  // All orders come from one stream, those of epochs that are over too.
  const orders = Array.from({ length: epochs }, () => random.shuffle(data));
  return orders.flatMap((order, epoch): SftBatch<T>[] => {
    if (epoch < from.epoch) return [];
    const first = epoch === from.epoch ? from.offset : 0;
    return Array.from({ length: Math.ceil((order.length - first) / batchSize) }, (_, i) => {
      const end = Math.min(first + (i + 1) * batchSize, order.length);
      const next = end === order.length ? { epoch: epoch + 1, offset: 0 } : { epoch, offset: end };
      return { examples: order.slice(first + i * batchSize, end), epoch, next };
    });
  });
}
