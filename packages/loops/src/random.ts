/** Seeded randomness: mulberry32, so that the same seed gives the same run on every machine. */
import { complaint } from '@loopwright/protocol';

/** A stream of random numbers; each call moves it on. */
export interface Random {
  /** Uniform in [0, 1), 32 bits. */
  next(): number;
  /** Uniform integer in [0, bound). */
  integer(bound: number): number;
  /** One of the items, uniformly. @throws `invalid_argument` when there are none */
  pick<T>(items: readonly T[]): T;
  /** The items in random order, as a new list (Fisher–Yates). */
  shuffle<T>(items: readonly T[]): T[];
}

/** A stream that another can go on from. */
export interface SavableRandom extends Random {
  /** What `createRandom` makes the rest of this stream from. */
  readonly state: number;
}

/** @param seed any integer; its low 32 bits count */
export function createRandom(seed: number): SavableRandom {
  let state = seed | 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const integer = (bound: number): number => Math.floor(next() * bound);
  return {
    get state() {
      return state;
    },
    next,
    integer,
    pick(items) {
      const item = items[integer(items.length)];
      if (item === undefined) throw complaint({ field: 'items', expected: 'at least one', got: 'none' });
      return item;
    },
    shuffle(items) {
      const shuffled = [...items];
      for (let i = shuffled.length - 1; i > 0; i--) {
        const j = integer(i + 1);
        [shuffled[i], shuffled[j]] = [shuffled[j]!, shuffled[i]!]; // both in range
      }
      return shuffled;
    },
  };
}

/** 32 well-mixed bits of a list of integers: a seed for each (step, group), unrelated to its neighbours'. */
export function mixSeed(...parts: readonly number[]): number {
  let hash = 0x811c9dc5;
  for (const part of parts) hash = finish(hash ^ (part | 0));
  return hash >>> 0;
}

/** FNV-1a of a text, finished so that every bit depends on every character. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return finish(hash) >>> 0;
}

/** The finaliser of MurmurHash3. */
function finish(value: number): number {
  let hash = value;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
