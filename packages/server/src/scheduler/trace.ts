/** When operations ran and when their slices ended: shows that sampling overlaps training. In memory, the latest operations only. */
export interface TraceEntry {
  readonly operationId: string;
  readonly kind: 'training' | 'sampling';
  readonly type: string;
  readonly sequenceNumber?: number;
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
  /** Ends of slices: time, and the share done by then. */
  readonly slices: readonly { readonly atMs: number; readonly done: number }[];
}

type Writable = { -readonly [K in keyof TraceEntry]: TraceEntry[K] } & {
  slices: { atMs: number; done: number }[];
};

const maxOperations = 256;
const maxSlices = 512;

export class Trace {
  readonly #entries: Writable[] = [];

  start(entry: Omit<TraceEntry, 'endedAtMs' | 'slices'>): {
    slice(atMs: number, done: number): void;
    end(atMs: number): void;
  } {
    const written: Writable = { ...entry, endedAtMs: null, slices: [] };
    this.#entries.push(written);
    if (this.#entries.length > maxOperations) this.#entries.shift();
    return {
      slice: (atMs, done) => {
        if (written.slices.length < maxSlices) written.slices.push({ atMs, done });
      },
      end: (atMs) => {
        written.endedAtMs = atMs;
      },
    };
  }

  /** In the order of their starts. */
  entries(): readonly TraceEntry[] {
    return this.#entries.map((entry) => ({ ...entry, slices: [...entry.slices] }));
  }
}
