/** Why an operation waits, in words for people. */
import type { OperationType } from '@loopwright/protocol';
import type { TrainingRecord } from '../operations/operation-record.js';

/** Where an operation stands that has not ended. */
export interface Progress {
  readonly state: 'queued' | 'running';
  /** Absent while it runs. */
  readonly waitingFor?: string;
  /** Since when it is in this state. */
  readonly sinceMs: number;
  /** Operations before it. */
  readonly position: number;
  /** Share done, 0 to 1, of a running operation that tells it. */
  readonly done?: number;
}

interface Neighbour {
  readonly sequenceNumber: number;
  readonly type: OperationType;
  readonly startedAtMs?: number;
}

export interface TrainingQueue {
  /** The number whose turn it is. */
  readonly next: number;
  /** What is accepted and has not ended, by sequence number. */
  readonly open: ReadonlyMap<number, Neighbour>;
  /** Numbers below the asked one that need not arrive. */
  readonly settled: (sequenceNumber: number) => boolean;
  readonly nowMs: number;
}

/** Those that have not ended, by sequence number. */
export function openNeighbours(
  records: readonly TrainingRecord[],
  startedAtMsOf: (id: string) => number | undefined,
): ReadonlyMap<number, Neighbour> {
  const open = records.filter(({ endedAtMs }) => endedAtMs === null);
  return new Map(
    open.map(({ id, sequenceNumber, type }) => {
      const startedAtMs = startedAtMsOf(id);
      return [sequenceNumber, { sequenceNumber, type, ...(startedAtMs === undefined ? {} : { startedAtMs }) }];
    }),
  );
}

/** What a queued training operation waits for: a missing number first, else the operation whose turn it is. */
export function trainingWait(sequenceNumber: number, queue: TrainingQueue): { waitingFor: string; position: number } {
  const { next, open, settled, nowMs } = queue;
  const position = [...open.keys()].filter((number) => number < sequenceNumber).length;
  for (let number = next; number < sequenceNumber; number++) {
    const before = open.get(number);
    if (before !== undefined) return { waitingFor: describe(before, nowMs), position };
    if (!settled(number)) return { waitingFor: `sequence number ${number}`, position };
  }
  return { waitingFor: 'its turn', position };
}

function describe({ sequenceNumber, type, startedAtMs }: Neighbour, nowMs: number): string {
  const name = `operation ${sequenceNumber} (${type})`;
  return startedAtMs === undefined
    ? `${name}, queued`
    : `${name} running for ${Math.round((nowMs - startedAtMs) / 1000)} s`;
}
