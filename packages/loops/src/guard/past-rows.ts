/** Which rows of an epoch were taken: as many keys as an epoch has rows, of the epochs that are not over. */
import type { RowFacts } from './facts.js';
import type { Observation } from './observation.js';
import { TwoHashes } from './two-hashes.js';

export interface PastRows {
  /** Hashes of the keys that were taken, by epoch: ids may be content. They grow in place: a copy at each step would cost as much as the epoch is long. */
  readonly epochs: ReadonlyMap<number, Set<number>>;
  /** The last epoch that is over, or of which it isn't known what was taken; −1 before the first ends. */
  readonly closed: number;
  /** Rows so far. */
  readonly counted: number;
  /** Of them, those that came again within their epoch. */
  readonly repeated: number;
  /** Left out on purpose so far. */
  readonly dropped: number;
  readonly unread: number;
}

interface Taken {
  readonly epoch: number;
  /** Hash of its key. */
  readonly hash: number;
  /** Of the step, from 0. */
  readonly row: number;
}

function hashOf(key: string | number): number {
  if (Number.isSafeInteger(key)) return Number(key);
  const text = String(key);
  const hashes = new TwoHashes();
  for (let i = 0; i < text.length; i++) hashes.add(text.charCodeAt(i));
  return hashes.number;
}

function takenRows({ keys, of, epochs }: RowFacts, { counted }: Pick<PastRows, 'counted'>): Taken[] {
  return keys.map((key, row) => ({
    epoch: epochs?.[row] ?? Math.floor((counted + row) / of),
    hash: hashOf(key),
    row,
  }));
}

/** Rows that were taken before in their epoch. */
export function repeatedRows(past: PastRows, rows: RowFacts): Taken[] {
  const own = new Map<number, Set<number>>();
  return takenRows(rows, past).filter(({ epoch, hash }) => {
    const now = own.get(epoch) ?? new Set<number>();
    own.set(epoch, now);
    const isAgain = now.has(hash) || past.epochs.get(epoch)?.has(hash) === true;
    now.add(hash);
    return isAgain;
  });
}

/** Epochs that end with this step, and how many of their rows never came: more rows of later ones are there than may come early. */
export function endedEpochs(past: PastRows, rows: RowFacts): { readonly epoch: number; readonly missing: number }[] {
  const { of, slack = 0 } = rows;
  const fresh = new Map<number, Set<number>>();
  for (const { epoch, hash } of takenRows(rows, past)) {
    if (past.epochs.get(epoch)?.has(hash) !== true) fresh.set(epoch, (fresh.get(epoch) ?? new Set<number>()).add(hash));
  }
  const sizeOf = (epoch: number): number => (past.epochs.get(epoch)?.size ?? 0) + (fresh.get(epoch)?.size ?? 0);
  const epochs = [...new Set([...past.epochs.keys(), ...fresh.keys()])].filter((epoch) => epoch > past.closed);
  return epochs.flatMap((epoch) => {
    const after = epochs.filter((each) => each > epoch).reduce((sum, each) => sum + sizeOf(each), 0);
    return after > Math.min(slack, of) ? [{ epoch, missing: Math.max(0, of - sizeOf(epoch)) }] : [];
  });
}

export function rememberRows(past: PastRows, { facts: { rows } }: Observation): PastRows {
  if (rows === undefined || !(rows.of > 0)) return past;
  const again = repeatedRows(past, rows).length;
  const ended = new Set(endedEpochs(past, rows).map(({ epoch }) => epoch));
  const epochs = new Map(past.epochs);
  for (const { epoch, hash } of takenRows(rows, past)) {
    if (epoch > past.closed) epochs.set(epoch, (epochs.get(epoch) ?? new Set<number>()).add(hash));
  }
  for (const epoch of ended) epochs.delete(epoch);
  return {
    epochs,
    closed: Math.max(past.closed, ...ended),
    counted: past.counted + rows.keys.length,
    repeated: past.repeated + again,
    dropped: past.dropped + (rows.dropped ?? 0),
    unread: rows.unread ?? past.unread,
  };
}
