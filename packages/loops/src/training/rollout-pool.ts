/**
 * Groups that are being made while the trainer trains. How many are under way or waiting is bounded by what is asked for and k
 * steps more, and what has become too old is sampled again or dropped.
 */
import { LoopwrightError } from '@loopwright/protocol';
import type { Sampler } from './clients.js';
import type { EngineClock } from './engine-clock.js';
import type { Resolved } from './grpo-options.js';
import type { GroupPhase, GrpoTask } from './grpo-task.js';
import { type Place, type ProblemStream, type SavedTicket, seedsOf, type Ticket } from './problem-stream.js';
import { isMeasured } from './reference-steps.js';
import { type Scope, withScope } from './scope.js';

/** Weights that groups are sampled from. */
export interface Policy {
  readonly sampler: Sampler;
  /** The step that made them; 0 before the first. */
  readonly step: number;
  /** Optimizer steps so far: skipped steps make no policy older. */
  readonly updates: number;
}

/** From when to when a part of the making of a group went on. */
export interface Span {
  readonly phase: GroupPhase;
  readonly from: number;
  readonly to: number;
}

export interface PooledGroup<G> {
  readonly group: G;
  readonly ticket: SavedTicket;
  readonly policy: Policy;
  readonly spans: readonly Span[];
  /** Absent where no distance was measured. */
  readonly scores: ReadonlyMap<object, readonly number[]> | undefined;
}

export interface PoolOptions<P, G> {
  readonly task: GrpoTask<P, G>;
  readonly stream: ProblemStream<P>;
  readonly scope: Scope;
  readonly run: Resolved;
  readonly engine: EngineClock;
  readonly policy: Policy;
  /** To be sampled before the stream's. */
  readonly pending?: readonly Ticket<P>[];
}

/** Groups that a step wants. */
export interface Demand {
  readonly step: number;
  readonly count: number;
  /** Groups that the step has already. */
  readonly first: number;
}

interface Job<P> {
  readonly ticket: Ticket<P>;
  readonly policy: Policy;
  cancel(reason: unknown): void;
}

interface Waiter<G> {
  resolve(group: PooledGroup<G>): void;
  reject(error: unknown): void;
}

export class RolloutPool<P, G> {
  readonly #options: PoolOptions<P, G>;
  readonly #again: Ticket<P>[];
  readonly #underWay = new Set<Job<P>>();
  #ready: (PooledGroup<G> & { readonly ticket: Ticket<P> })[] = [];
  #policy: Policy;
  #demand: Demand = { step: 0, count: 0, first: 0 };
  /** Groups asked for and not yet handed over. */
  #owed = 0;
  /** Groups started for this demand. */
  #started = 0;
  #waiter: Waiter<G> | undefined;
  #failure: { readonly error: unknown } | undefined;
  #counts = { requeued: 0, dropped: 0 };

  constructor(options: PoolOptions<P, G>) {
    this.#options = options;
    this.#policy = options.policy;
    this.#again = [...(options.pending ?? [])];
  }

  /** Problems that were taken from the stream and not handed over, in their order. */
  get pending(): SavedTicket[] {
    const tickets = [...this.#again, ...[...this.#underWay, ...this.#ready].map(({ ticket }) => ticket)];
    return tickets
      .map(({ index, place, attempt, drawnFrom }) => ({ index, place, attempt, drawnFrom }))
      .sort((a, b) => a.index - b.index);
  }

  /** What became of groups that were too old, since the last call. */
  takeCounts(): { readonly requeued: number; readonly dropped: number } {
    const counts = this.#counts;
    this.#counts = { requeued: 0, dropped: 0 };
    return counts;
  }

  /** Newer weights: what is sampled from now on comes from them, and what is too old beside them goes. */
  renew(policy: Policy): void {
    this.#policy = policy;
    const tooOld = ({ policy: { updates } }: { readonly policy: Policy }): boolean =>
      policy.updates - updates > this.#options.run.maxStepsOffPolicy;
    for (const job of [...this.#underWay].filter(tooOld)) {
      this.#underWay.delete(job);
      job.cancel(new LoopwrightError({ code: 'cancelled', message: 'the policy that samples has become too old' }));
      this.#discard(job.ticket);
    }
    const old = this.#ready.filter(tooOld);
    this.#ready = this.#ready.filter((group) => !tooOld(group));
    for (const { ticket } of old) this.#discard(ticket);
    this.#fill();
  }

  ask(demand: Demand): void {
    this.#demand = demand;
    this.#owed += demand.count;
    this.#started = 0;
    this.#fill();
  }

  /** One of the groups that were asked for. @throws what the making of any group threw; what `fail` was told */
  next(): Promise<PooledGroup<G>> {
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
      this.#serve();
    });
  }

  /** Ends the wait for a group. */
  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#serve();
  }

  #discard(ticket: Ticket<P>): void {
    if (this.#options.run.stalePolicy === 'drop') {
      this.#counts.dropped += 1;
      return;
    }
    this.#counts.requeued += 1;
    this.#again.push({ ...ticket, attempt: ticket.attempt + 1 });
  }

  #fill(): void {
    const { run, stream } = this.#options;
    const { maxStepsOffPolicy, groupsPerStep, maxGroupsUnderWay, steps } = run;
    const ahead = Math.min(maxStepsOffPolicy, Math.max(0, steps - this.#demand.step)) * groupsPerStep;
    const isFull = (): boolean =>
      this.#underWay.size >= maxGroupsUnderWay ||
      this.#underWay.size + this.#ready.length >= this.#owed + ahead ||
      this.#failure !== undefined;
    while (!isFull()) {
      const { step, first } = this.#demand;
      // Without overlap all that is started is of this step. With it, which step a group comes to is up to timing, so its place is not.
      const place: Place | undefined = maxStepsOffPolicy === 0 ? { step, first, offset: this.#started } : undefined;
      this.#start(this.#again.shift() ?? stream.next(place));
      this.#started += 1;
    }
  }

  #start(ticket: Ticket<P>): void {
    const { task, run, scope, engine } = this.#options;
    const policy = this.#policy;
    const spans: Span[] = [];
    const timed = async <T>(phase: GroupPhase, work: () => Promise<T>): Promise<T> => {
      const from = run.now();
      const result = await work();
      spans.push({ phase, from, to: run.now() });
      return result;
    };
    const scores = new Map<object, readonly number[]>();
    const reference = isMeasured(run, ticket.place.step)
      ? { scorer: engine.scorer(run.reference.scorer), scores }
      : undefined;
    const seeds = seedsOf(run.seed, ticket);
    const { ended, cancel } = scope.start((signal) =>
      withScope(signal, (own) =>
        task.group(ticket.problem, { sampler: engine.sampler(policy.sampler), scope: own, seeds, timed, reference }),
      ),
    );
    const job: Job<P> = { ticket, policy, cancel };
    this.#underWay.add(job);
    ended.then(
      (group) => {
        if (!this.#underWay.delete(job)) return; // too old meanwhile
        this.#ready.push({ group, ticket, policy, spans, scores: reference && scores });
        this.#serve();
        this.#fill();
      },
      (error: unknown) => {
        if (this.#underWay.delete(job)) this.fail(error);
      },
    );
  }

  #serve(): void {
    const waiter = this.#waiter;
    if (waiter === undefined) return;
    if (this.#failure !== undefined) {
      this.#waiter = undefined;
      waiter.reject(this.#failure.error);
      return;
    }
    const group = this.#oldest();
    if (group === undefined) return;
    this.#ready = this.#ready.filter((each) => each !== group);
    this.#waiter = undefined;
    this.#owed -= 1;
    waiter.resolve(group);
  }

  /** What was sampled first, of what is ready; without overlap in the order of problems, so that timing has no say. */
  #oldest(): PooledGroup<G> | undefined {
    const [first] = this.#ready.toSorted(
      (a, b) => a.policy.updates - b.policy.updates || a.ticket.index - b.ticket.index,
    );
    if (first === undefined || this.#options.run.maxStepsOffPolicy > 0) return first;
    const isBefore = [...this.#underWay].some(({ ticket }) => ticket.index < first.ticket.index);
    return isBefore ? undefined : first;
  }
}
