/**
 * How a pass is cut into micro-batches: a function of data, loss, model and the recorded plan alone, never of load or free memory,
 * so that the same operation always adds up in the same order.
 */
import type { Datum, LossSpec } from '@loopwright/protocol';
import type { RecomputePlan } from '../../engine.js';
import { formOf, paddedLength, type SequenceForm } from '../models/sequence-form.js';
import { branchStarts, fillSegments, type PackedRow, packRows, targetsOf } from './packed-row.js';

export interface MicroBatchPlan {
  /** Tokens at most in one micro-batch, padding included (one longer datum makes one by itself). */
  readonly microBatchTokens: number;
  /** Lengths are padded to a multiple of this, rounded up to whole blocks of queries. */
  readonly lengthMultiple: number;
  /** Datums that begin alike share their beginning, where that is cheaper; see packed-row.ts. */
  readonly sharePrefixes?: boolean;
  /** What long rows and large micro-batches compute again. */
  readonly recompute?: RecomputePlan;
}

export interface MicroBatch {
  readonly rows: readonly PackedRow[];
  /** S, padded. */
  readonly length: number;
  /** K. */
  readonly targets: number;
  readonly form: SequenceForm;
}

export interface ModelLimits {
  /** {@link packRows} */
  readonly attentionTokens: number;
  /** Shared rows are no longer: the tables of positions end there. */
  readonly contextLength: number;
}

/** Rows of like length together, longest first; equal ones in the order of their datums. */
export function planMicroBatches(
  data: readonly Datum[],
  loss: LossSpec,
  {
    microBatchTokens,
    lengthMultiple,
    sharePrefixes = false,
    recompute,
    attentionTokens,
    contextLength,
  }: MicroBatchPlan & ModelLimits,
): MicroBatch[] {
  const maxTokens = sharePrefixes ? Math.min(microBatchTokens, contextLength) : 0;
  const packed = packRows(data, loss, { maxTokens, attentionTokens });
  const rows = packed.map((row) => ({
    row,
    first: Math.min(...row.datums),
    length: paddedLength(row.tokens, lengthMultiple, recompute),
    targets: targetsOf(data[row.datums[0]!]!),
  }));
  rows.sort((a, b) => b.targets - a.targets || b.length - a.length || a.first - b.first);
  const batches: { rows: PackedRow[]; length: number; targets: number }[] = [];
  for (const { row, length, targets } of rows) {
    const last = batches.at(-1);
    if (last !== undefined && last.targets === targets && (last.rows.length + 1) * last.length <= microBatchTokens)
      last.rows.push(row);
    else batches.push({ rows: [row], length, targets });
  }
  return batches.map((batch) => ({
    ...batch,
    form: formOf(recompute, { rows: batch.rows.length, length: batch.length }),
  }));
}

/** Arrays of one micro-batch, row-major; padding has weight 0 and id 0. */
export interface BatchArrays {
  /** [B, S] */
  readonly ids: BigInt64Array;
  readonly positions: BigInt64Array;
  readonly segments: BigInt64Array;
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
    segments: new BigInt64Array(count),
    targets: new BigInt64Array(count * K),
    weights: new Float32Array(count * K),
    advantages: new Float32Array(count),
    oldLogprobs: new Float32Array(count),
    inverseTemperature: new Float32Array(count).fill(1),
  };
  rows.forEach((row, b) => {
    const starts = branchStarts(data, row);
    row.datums.forEach((index, m) => {
      const datum = data[index]!;
      // The first datum brings the trunk, which is silent for all of them.
      const from = m === 0 ? 0 : row.trunk;
      copyDatum(arrays, datum, { from, to: b * S + starts[m]! - row.trunk + from, K, loss });
      if (m === 0) arrays.weights.fill(0, b * S * K, (b * S + row.trunk) * K);
    });
    fillSegments(arrays.segments.subarray(b * S, (b + 1) * S), data, row);
  });
  return arrays;
}

/** Copies a datum from its position `from` on to position `to` of the arrays. */
function copyDatum(
  arrays: BatchArrays,
  datum: Datum,
  { from, to, K, loss }: { from: number; to: number; K: number; loss: LossSpec },
): void {
  const length = datum.modelInput.length;
  for (let s = from; s < length; s++) {
    const at = to + s - from;
    arrays.ids[at] = BigInt(datum.modelInput[s]!);
    arrays.positions[at] = BigInt(s);
    for (let k = 0; k < K; k++) arrays.targets[at * K + k] = BigInt(datum.targetTokens.data[s * K + k]!);
    for (let k = 0; k < K; k++) arrays.weights[at * K + k] = datum.weights?.data[s * K + k] ?? 1;
    if (datum.temperature !== undefined) arrays.inverseTemperature[at] = 1 / datum.temperature.data[s]!;
    // Where the weight is 0 anything may stand there, and 0 · NaN is NaN; inputs that the loss does not read stay 0 likewise.
    if (loss.name === 'cross_entropy' || datum.weights?.data[s] === 0) continue;
    arrays.advantages[at] = datum.advantages?.data[s] ?? 0;
    arrays.oldLogprobs[at] = datum.logprobs?.data[s] ?? 0;
    // dro leaves out positions that were never sampled: advantage and old log-probability are both 0 there.
    if (loss.name === 'dro' && arrays.advantages[at] === 0 && arrays.oldLogprobs[at] === 0) arrays.weights[at] = 0;
  }
}
