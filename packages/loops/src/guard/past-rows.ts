/** Which rows of an epoch were taken: as many keys as an epoch has rows, of the epochs that are not over. */
import type { RowFacts } from './facts.js';
import type { Observation } from './observation.js';

type Key = string | number;

export interface PastRows {
  /** Keys that were taken, by epoch. They grow in place: a copy at each step would cost as much as the epoch is long. */
  readonly epochs: ReadonlyMap<number, Set<Key>>;
  /** The last epoch that is over; −1 before the first ends. */
  readonly closed: number;
  /** Rows so far. */
  readonly counted: number;
  /** Of them, those that came again within their epoch. */
  readonly repeated: number;
  readonly unread: number;
}

interface Taken {
  readonly epoch: number;
  readonly key: Key;
}

export function takenRows({ keys, of, epochs }: RowFacts, { counted }: Pick<PastRows, 'counted'>): Taken[] {
  return keys.map((key, i) => ({ key, epoch: epochs?.[i] ?? Math.floor((counted + i) / of) }));
}

/** Rows that were taken before in their epoch. */
export function repeatedRows(past: PastRows, rows: RowFacts): Taken[] {
  const own = new Map<number, Set<Key>>();
  return takenRows(rows, past).filter(({ epoch, key }) => {
    const now = own.get(epoch) ?? new Set<Key>();
    own.set(epoch, now);
    const isAgain = now.has(key) || past.epochs.get(epoch)?.has(key) === true;
    now.add(key);
    return isAgain;
  });
}

/** Epochs that end with this step, and how many of their rows never came: more rows of later ones are there than may come early. */
export function endedEpochs(past: PastRows, rows: RowFacts): { readonly epoch: number; readonly missing: number }[] {
  const { of, slack = 0 } = rows;
  const fresh = new Map<number, Set<Key>>();
  for (const { epoch, key } of takenRows(rows, past)) {
    if (past.epochs.get(epoch)?.has(key) !== true) fresh.set(epoch, (fresh.get(epoch) ?? new Set<Key>()).add(key));
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
  for (const { epoch, key } of takenRows(rows, past)) {
    if (epoch > past.closed) epochs.set(epoch, (epochs.get(epoch) ?? new Set<Key>()).add(key));
  }
  for (const epoch of ended) epochs.delete(epoch);
  return {
    epochs,
    closed: Math.max(past.closed, ...ended),
    counted: past.counted + rows.keys.length,
    repeated: past.repeated + again,
    unread: rows.unread ?? past.unread,
  };
}
