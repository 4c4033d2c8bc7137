/** The problems of a run in their order: which comes when, and what its answers are drawn with, is up to the seed, never to timing. */
import { createRandom, mixSeed, type Random, type SavableRandom } from '../random.js';

/** Where a group stands in its step: `offset` in the round that begins at `first`. Sample seeds are made of it. */
export interface Place {
  /** From 1. */
  readonly step: number;
  /** Groups of the step before this round. */
  readonly first: number;
  readonly offset: number;
}

/** A problem that is to be sampled. */
export interface Ticket<P> {
  /** In the order of problems, from 0. */
  readonly index: number;
  readonly problem: P;
  readonly place: Place;
  /** How often it was sampled before, and the samples thrown away. */
  readonly attempt: number;
  /** What the problem was drawn from. */
  readonly drawnFrom: number;
}

/** A ticket without its problem, which is drawn again. */
export type SavedTicket = Omit<Ticket<unknown>, 'problem'>;

export interface StreamState {
  /** Index of the next problem. */
  readonly next: number;
  /** Of the random stream that problems are drawn from. */
  readonly random: number;
}

/** Seeds of the samples of a group. */
export interface GroupSeeds {
  readonly answers: number;
  readonly episode: (member: number) => number;
}

export function seedsOf(seed: number, { place: { step, first, offset }, attempt }: SavedTicket): GroupSeeds {
  const again = attempt === 0 ? [] : [attempt];
  return {
    answers: mixSeed(seed, step, first + offset, ...again),
    episode: (member) => mixSeed(mixSeed(seed, step, first, ...again), offset, member),
  };
}

/** Draws, or a list that is taken epoch by epoch. */
export type ProblemSource<P> = { readonly draw: (random: Random) => P } | { readonly problems: readonly P[] };

export interface StreamOptions<P> {
  readonly source: ProblemSource<P>;
  readonly seed: number;
  readonly groupsPerStep: number;
  readonly from?: StreamState;
  /** Told when the first problem of another epoch is taken; epochs count from 1. */
  readonly onEpoch?: (ended: number) => void;
}

export class ProblemStream<P> {
  readonly #options: StreamOptions<P>;
  readonly #random: SavableRandom;
  #next: number;
  #order: { readonly epoch: number; readonly rows: readonly number[] } | undefined;

  constructor(options: StreamOptions<P>) {
    this.#options = options;
    this.#random = createRandom(options.from?.random ?? options.seed);
    this.#next = options.from?.next ?? 0;
  }

  get state(): StreamState {
    return { next: this.#next, random: this.#random.state };
  }

  /** @param place default: as if each step took its P problems and no more */
  next(place?: Place): Ticket<P> {
    const index = this.#next++;
    const drawnFrom = this.#random.state;
    const size = 'problems' in this.#options.source ? this.#options.source.problems.length : 0;
    if (size > 0 && index > 0 && index % size === 0) this.#options.onEpoch?.(index / size);
    const { groupsPerStep } = this.#options;
    const usual = { step: Math.floor(index / groupsPerStep) + 1, first: 0, offset: index % groupsPerStep };
    return { index, problem: this.#problem(index, this.#random), place: place ?? usual, attempt: 0, drawnFrom };
  }

  /** The ticket with its problem. */
  restore(saved: SavedTicket): Ticket<P> {
    return { ...saved, problem: this.#problem(saved.index, createRandom(saved.drawnFrom)) };
  }

  #problem(index: number, random: SavableRandom): P {
    const { source } = this.#options;
    if ('draw' in source) return source.draw(random);
    const { length } = source.problems;
    return source.problems[this.#rows(Math.floor(index / length), length)[index % length]!]!; // a permutation of its rows
  }

  #rows(epoch: number, length: number): readonly number[] {
    if (this.#order?.epoch !== epoch) {
      const rows = Array.from({ length }, (_, row) => row);
      this.#order = { epoch, rows: createRandom(mixSeed(this.#options.seed, length, epoch)).shuffle(rows) };
    }
    return this.#order.rows;
  }
}
