/**
 * How a pass is cut into micro-batches: a function of the data and the recorded plan alone, never of load or free memory,
 * so that the same operation always adds up in the same order.
 */
import type { Datum, LossSpec } from '@loopwright/protocol';

export interface MicroBatchPlan {
  /** Tokens at most in one micro-batch, padding included (one longer datum makes one by itself). */
  readonly microBatchTokens: number;
  /** Lengths are padded to a multiple of this. */
  readonly lengthMultiple: number;
}

export interface MicroBatch {
  /** Positions of the datums in the operation. */
  readonly rows: readonly number[];
  /** S, padded. */
  readonly length: number;
  /** K. */
  readonly targets: number;
}

const targetsOf = (datum: Datum) => datum.targetTokens.shape[1] ?? 1;
const paddedLength = (datum: Datum, multiple: number) => Math.ceil(datum.modelInput.length / multiple) * multiple;

/** Datums of like length together, longest first; equal ones in their order. */
export function planMicroBatches(
  data: readonly Datum[],
  { microBatchTokens, lengthMultiple }: MicroBatchPlan,
): MicroBatch[] {
  const order = data.map((_, row) => row);
  const length = (row: number) => paddedLength(data[row]!, lengthMultiple);
  const targets = (row: number) => targetsOf(data[row]!);
  order.sort((a, b) => targets(b) - targets(a) || length(b) - length(a) || a - b);
  const batches: { rows: number[]; length: number; targets: number }[] = [];
  for (const row of order) {
    const last = batches.at(-1);
    if (last !== undefined && last.targets === targets(row) && (last.rows.length + 1) * last.length <= microBatchTokens)
      last.rows.push(row);
    else batches.push({ rows: [row], length: length(row), targets: targets(row) });
  }
  return batches;
}

/** Arrays of one micro-batch, row-major; padding has weight 0 and id 0. */
export interface BatchArrays {
  /** [B, S] */
  readonly ids: BigInt64Array;
  readonly positions: BigInt64Array;
  /** [B·S, K] */
  readonly targets: BigInt64Array;
  readonly weights: Float32Array;
  /** [B·S, 1] */
  readonly advantages: Float32Array;
  readonly oldLogprobs: Float32Array;
  readonly inverseTemperature: Float32Array;
}

export function fillBatch(
  data: readonly Datum[],
  { rows, length: S, targets: K }: MicroBatch,
  loss: LossSpec,
): BatchArrays {
  const count = rows.length * S;
  const arrays: BatchArrays = {
    ids: new BigInt64Array(count),
    positions: new BigInt64Array(count),
    targets: new BigInt64Array(count * K),
    weights: new Float32Array(count * K),
    advantages: new Float32Array(count),
    oldLogprobs: new Float32Array(count),
    inverseTemperature: new Float32Array(count).fill(1),
  };
  rows.forEach((row, b) => {
    const datum = data[row]!;
    const start = b * S;
    for (let s = 0; s < S; s++) arrays.positions[start + s] = BigInt(s);
    datum.modelInput.forEach((id, s) => {
      arrays.ids[start + s] = BigInt(id);
    });
    datum.targetTokens.data.forEach((id, i) => {
      arrays.targets[start * K + i] = BigInt(id);
    });
    if (datum.weights === undefined) arrays.weights.fill(1, start * K, (start + datum.modelInput.length) * K);
    else arrays.weights.set(datum.weights.data, start * K);
    // Where the weight is 0 anything may stand there, and 0 · NaN is NaN; inputs that the loss does not read stay 0 likewise.
    const isRead = (position: number) => loss.name !== 'cross_entropy' && datum.weights?.data[position] !== 0;
    datum.advantages?.data.forEach((advantage, s) => {
      if (isRead(s)) arrays.advantages[start + s] = advantage;
    });
    datum.logprobs?.data.forEach((logprob, s) => {
      if (isRead(s)) arrays.oldLogprobs[start + s] = logprob;
    });
    datum.temperature?.data.forEach((temperature, s) => {
      arrays.inverseTemperature[start + s] = 1 / temperature;
    });
    // dro leaves out positions that were never sampled: advantage and old log-probability are both 0 there.
    if (loss.name === 'dro') {
      for (let i = start; i < start + datum.modelInput.length; i++) {
        if (arrays.advantages[i] === 0 && arrays.oldLogprobs[i] === 0) arrays.weights[i] = 0;
      }
    }
  });
  return arrays;
}
