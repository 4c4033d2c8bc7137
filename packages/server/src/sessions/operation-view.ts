/** An operation as whoever asks for it sees it. */
import type { LoopwrightError } from '@loopwright/protocol';
import type { OperationRecord } from '../operations/operation-record.js';
import type { Progress } from '../scheduler/progress.js';
import type { AnyResult } from '../usage/ledger.js';

/** How long the answer about an operation may be held. */
export interface Hold {
  readonly waitMs: number;
  readonly signal?: AbortSignal;
}

/** An operation as a result request sees it. */
export type OperationView =
  | { readonly status: 'Pending' | 'InProgress'; readonly record: OperationRecord; readonly progress: Progress }
  | { readonly status: 'Completed'; readonly record: OperationRecord; readonly done: AnyResult }
  | { readonly status: 'Failed' | 'Skipped'; readonly record: OperationRecord; readonly error: LoopwrightError };
