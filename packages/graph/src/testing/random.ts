/** Seeded randomness for tests: the same seed gives the same numbers everywhere. */

export interface Random {
  /** Uniform in [0, 1). */
  uniform(): number;
  /** Whole number from `low` to `high`, both included. */
  int(low: number, high: number): number;
  /** One of the items. */
  pick<T>(items: readonly T[]): T;
}

/** Mulberry32: 32 bits of state, enough for test data. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const uniform = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const int = (low: number, high: number): number => low + Math.floor(uniform() * (high - low + 1));
  return { uniform, int, pick: (items) => items[int(0, items.length - 1)]! }; // in range: int stays inside the bounds
}
