/** A tracker that can't stop a run: what it throws is counted, and told at the end. */
import { errorText } from '../error-text.js';
import type { TrackedEnd, TrackedRun, TrackedStep, Tracker, TrackerPlace, TrackerReport } from './tracker.js';

/** One tracker of a run. Its methods never reject. */
export class GuardedTracker {
  readonly #tracker: Tracker;
  #place: TrackerPlace = {};
  #isStarted = false;
  #lost = 0;
  #problem: string | undefined;

  constructor(tracker: Tracker) {
    this.#tracker = tracker;
  }

  get name(): string {
    return this.#tracker.name;
  }

  get place(): TrackerPlace {
    return this.#place;
  }

  async start(run: TrackedRun): Promise<void> {
    await this.#guard(async () => {
      this.#place = await this.#tracker.start(run);
      this.#isStarted = true;
    });
    if (!this.#isStarted)
      run.warn(
        `${this.name}: could not be started (${this.#problem ?? 'no reason given'}); the run goes on without it`,
      );
  }

  async step(step: TrackedStep): Promise<void> {
    const isTaken = this.#isStarted && (await this.#guard(() => this.#tracker.step(step)));
    if (!isTaken) this.#lost += 1;
  }

  async finish(end: TrackedEnd): Promise<TrackerReport> {
    let report: TrackerReport = { sent: 0, lost: 0 };
    if (this.#isStarted) {
      await this.#guard(async () => {
        report = await this.#tracker.finish(end);
      });
    }
    const problem = this.#problem ?? report.problem;
    const { problem: _, ...rest } = report;
    return { ...rest, lost: report.lost + this.#lost, ...(problem === undefined ? {} : { problem }) };
  }

  async #guard(work: () => unknown): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      this.#problem ??= errorText(error);
      return false;
    }
  }
}
