/** An MLflow server as a tracker: it never holds a run up, and a server that is down costs nothing but a warning. */
import type { TrackedEnd, TrackedRun, TrackedStep, Tracker, TrackerPlace, TrackerReport } from '../tracker.js';
import { failureText, MlflowClient, MlflowFailure, type MlflowServer } from './mlflow-client.js';
import { MlflowRun } from './mlflow-run.js';

export interface MlflowOptions extends MlflowServer {
  /** Made where it isn't there; default `loopwright`. */
  readonly experiment?: string;
  /** Milliseconds between attempts while the server can't be reached; default 30 s. */
  readonly retryMs?: number;
  /** Milliseconds before each further attempt at the end of the run; default 1, 4 and 10 s. */
  readonly endRetriesMs?: readonly number[];
  /** Milliseconds; default the performance clock. */
  readonly now?: () => number;
  /** Default: the system's timers. */
  readonly wait?: (ms: number) => Promise<void>;
}

/**
 * Sends settings as params, facts as tags, and the numbers of each step as metrics, in the background and in batches. An alarm is a tag with its text, the newest
 * of its name, and a metric at each step that it is raised: 1 note, 2 warn, 3 stop. While the server can't be reached steps wait; what is still waiting at the end is tried again, then told as lost. The run folder has everything either way. MLflow can't take points back:
 * where a run goes on, steps that it does again have two.
 *
 * @throws `invalid_argument` for an address that isn't of HTTP
 * @example
 * await using run = await openRun({ folder: 'runs/math', config, trackers: [mlflowTracker({ uri: 'http://127.0.0.1:5000' })] });
 */
export function mlflowTracker(options: MlflowOptions): Tracker {
  return new MlflowTracker(options);
}

class MlflowTracker implements Tracker {
  readonly name = 'mlflow';
  readonly #client: MlflowClient;
  readonly #options: Required<Omit<MlflowOptions, keyof MlflowServer>>;
  #tracked: TrackedRun | undefined;
  #run: MlflowRun | undefined;
  #waiting: TrackedStep[] = [];
  /** The attempt under way. */
  #sending: Promise<void> | undefined;
  #notBefore = Number.NEGATIVE_INFINITY;
  #sent = 0;
  #lost = 0;
  /** Of the last attempt. */
  #failure: unknown;
  /** Why something was left out. */
  #refused: string | undefined;
  #isCareful = false;

  constructor({
    experiment = 'loopwright',
    retryMs = 30_000,
    endRetriesMs = [1000, 4000, 10_000],
    now = () => performance.now(),
    wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    ...server
  }: MlflowOptions) {
    this.#client = new MlflowClient(server);
    this.#options = { experiment, retryMs, endRetriesMs, now, wait };
  }

  /** Waits for the server once, so that a wrong address is told at the beginning. */
  async start(run: TrackedRun): Promise<TrackerPlace> {
    this.#tracked = run;
    await this.#send();
    return this.#place();
  }

  step(step: TrackedStep): void {
    this.#waiting.push(step);
    if (this.#options.now() >= this.#notBefore) void this.#send();
  }

  async finish(end: TrackedEnd): Promise<TrackerReport> {
    await this.#sending;
    let failure = await this.#end(end);
    for (const ms of this.#options.endRetriesMs) {
      if (!isPassing(failure)) break;
      await this.#options.wait(ms);
      failure = await this.#end(end);
    }
    const lost = this.#lost + this.#waiting.length;
    const problem = failure === undefined ? this.#refused : failureText(failure);
    return { sent: this.#sent, lost, ...(problem === undefined ? {} : { problem }), ...this.#place() };
  }

  /** @returns what stands in the way */
  async #end(end: TrackedEnd): Promise<unknown> {
    await this.#send();
    if (this.#failure !== undefined) return this.#failure;
    try {
      await this.#run?.end(end);
      return undefined;
    } catch (error) {
      return error;
    }
  }

  #place(): TrackerPlace {
    return this.#run === undefined ? {} : { reference: this.#run.id, link: this.#run.link };
  }

  /** Sends what is waiting; never rejects. One attempt at a time. */
  #send(): Promise<void> {
    this.#sending ??= this.#attempt().finally(() => {
      this.#sending = undefined;
    });
    return this.#sending;
  }

  async #attempt(): Promise<void> {
    const tracked = this.#tracked;
    if (tracked === undefined) return;
    try {
      this.#failure = undefined;
      this.#run ??= await MlflowRun.open(this.#client, tracked, this.#options.experiment);
      await this.#run.logParams().catch((error: unknown) => this.#refuse(error));
      while (this.#waiting.length > 0) await this.#sendSome(this.#run);
    } catch (error) {
      this.#failure = error;
      this.#notBefore = this.#options.now() + this.#options.retryMs;
      this.#warn(`${failureText(error)}; the run goes on with its folder alone, and sending is tried again`);
    }
  }

  /** What is refused would be refused again, and hold up the others: it is found by sending one by one, and left out. */
  async #sendSome(run: MlflowRun): Promise<void> {
    try {
      const count = await run.logSteps(this.#isCareful ? this.#waiting.slice(0, 1) : this.#waiting);
      this.#waiting.splice(0, count);
      this.#sent += count;
      this.#isCareful = false;
    } catch (error) {
      if (this.#isCareful) {
        this.#refuse(error);
        this.#waiting.splice(0, 1);
        this.#lost += 1;
      } else if (!isRefusal(error)) throw error;
      this.#isCareful = !this.#isCareful;
    }
  }

  /** @throws the error, where the same call may come through later */
  #refuse(error: unknown): void {
    if (!isRefusal(error)) throw error;
    this.#refused ??= failureText(error);
    this.#warn(`${failureText(error)}, and so has not all of the run`);
  }

  #warn(text: string): void {
    this.#tracked?.warn(`mlflow: ${text}`);
  }
}

function isPassing(error: unknown): boolean {
  return error instanceof MlflowFailure && error.isPassing;
}

function isRefusal(error: unknown): boolean {
  return error instanceof MlflowFailure && error.code === 'INVALID_PARAMETER_VALUE';
}
