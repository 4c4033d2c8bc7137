/** What a replay or a comparison finds at an operation. */
import type { ExecutionPlan } from '@loopwright/engine';
import type { ErrorCode, OperationType } from '@loopwright/protocol';
import type { OperationRecord } from '../operations/operation-record.js';
import type { FieldDifference, ValueDifference } from './differences.js';
import type { WeightsDifference } from './weights-difference.js';

export type Finding =
  /** Its inputs differ: `values` are their hashes, versions named by the operations that saved them. */
  | { readonly type: 'inputs'; readonly values: readonly [string, string]; readonly difference?: ValueDifference }
  /** It ended in another way: `Completed`, `Skipped`, or `Failed` with a code. */
  | { readonly type: 'outcome'; readonly values: readonly [string, string] }
  | { readonly type: 'result'; readonly difference: ValueDifference }
  /** What it saved differs. */
  | { readonly type: 'weights'; readonly difference: WeightsDifference }
  /** Something that the log holds of it can't be read; a recorded hash is compared all the same. */
  | { readonly type: 'damaged'; readonly what: 'inputs' | 'result' | 'weights'; readonly message: string }
  /** It could not be run. */
  | { readonly type: 'not-run'; readonly message: string }
  /** One side has no such operation; `values` are the types, null for none. */
  | { readonly type: 'missing'; readonly values: readonly [OperationType | null, OperationType | null] };

export interface OperationRef {
  /** `5` for training operation 5, `5.2` for the second that samples from what 5 saved, `0.1` for the first of other weights. */
  readonly place: string;
  readonly type: OperationType;
  readonly operationId: string;
}

export interface OperationFindings extends OperationRef {
  /** In the order in which they were looked for; never empty. */
  readonly findings: readonly Finding[];
}

export function refOf({ id, type }: OperationRecord, place: string): OperationRef {
  return { place, type, operationId: id };
}

/** How an operation ended, as findings tell it. */
export function outcomeText(outcome: { readonly status: string; readonly code?: ErrorCode | undefined }): string {
  return outcome.code === undefined ? outcome.status : `${outcome.status} (${outcome.code})`;
}

/** Fields of two execution plans that differ; what older plans leave out has the meaning it had then. */
export function planDifferences(a: ExecutionPlan, b: ExecutionPlan): FieldDifference[] {
  const [one, other] = [a, b].map((plan) => ({
    ...{ device: 'cpu', samplerPrecision: 'float32', sharePrefixes: false, packWeights: false },
    ...plan,
  }));
  return fieldDifferences(one!, other!);
}

/** Fields of two flat objects that differ, such as execution plans. */
export function fieldDifferences(a: object, b: object): FieldDifference[] {
  const [left, right] = [a, b].map((side) => new Map(Object.entries(side)));
  return [...new Set([...left!.keys(), ...right!.keys()])].flatMap((path): FieldDifference[] => {
    const values = [left!.get(path), right!.get(path)].map(tellable) as [Tellable, Tellable]; // true: of two
    return values[0] === values[1] ? [] : [{ path, values }];
  });
}

type Tellable = number | string | boolean | null;

function tellable(value: unknown): Tellable {
  if (value === undefined || value === null) return null;
  return typeof value === 'number' || typeof value === 'string' || typeof value === 'boolean'
    ? value
    : JSON.stringify(value);
}
