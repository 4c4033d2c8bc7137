/** The operations of one session on the wire: submission in order, sampling beside it, held polls until the end. */
import { asLoopwrightError, complaint, LoopwrightError } from '@loopwright/protocol';
import { headers, type RuntimeRouteName, routePath, runtimeRoutes } from '@loopwright/wires/sagemaker';
import type { OperationTask } from './operation-task.js';
import { briefPolicy, patientPolicy } from './retry.js';
import { Slots } from './slots.js';
import type { Transport } from './transport.js';

/** Browsers open six connections to a server at most: held polls must leave room for submissions. */
const isBrowser = 'document' in globalThis || 'WorkerGlobalScope' in globalThis;
const trainingPolls = isBrowser ? 1 : 4;
const samplingPolls = isBrowser ? 2 : 64;
const samplingSubmissions = isBrowser ? 2 : 64;

/** How long result requests are held: the first shortly, so that the reason for waiting is known soon. */
const firstHoldSeconds = 2;
const laterHoldSeconds = 30;
/** A short sampling operation is waited for by its submission, while there are few. */
const submissionHoldSeconds = 0.1;
const heldSubmissions = isBrowser ? 0 : 16;
/** An attempt outlasts its hold by this much before it counts as timed out. */
const holdSlackMs = 20_000;
/** A server that does not hold is asked again after this long at most. */
const maxPollDelayMs = 2_000;

type Kind = 'training' | 'sampling';

const routes = {
  training: { execute: 'executeTraining', result: 'trainingResult', cancel: 'cancelTraining' },
  sampling: { execute: 'executeSampling', result: 'samplingResult', cancel: 'cancelSampling' },
} as const satisfies Record<Kind, Record<'execute' | 'result' | 'cancel', RuntimeRouteName>>;

/** A task whatever its result. */
type AnyTask = OperationTask<unknown>;

/**
 * Sequence numbers: the next one is given out when an operation is submitted, in the order of the calls, so what is cancelled
 * before that leaves no gap. When it stays open whether the server counts a number (a refusal, a lost answer), the next
 * operation asks for the same number again with a token of its own, and moves on when the server says that it is used.
 */
export class SessionLink {
  readonly transport: Transport;
  readonly name: string;
  readonly #trainer = crypto.randomUUID();
  readonly #queue: AnyTask[] = [];
  readonly #open = new Set<AnyTask>();
  readonly #trainingPolls = new Slots(trainingPolls);
  readonly #samplingPolls = new Slots(samplingPolls);
  readonly #samplingSubmissions = new Slots(samplingSubmissions);
  #heldSubmissions = 0;
  #isPumping = false;
  #lastNumber = 0;
  #uncertainNumber: number | undefined;
  /** A forwardBackward that never reached the session, since the last step. */
  #missingPass: LoopwrightError | undefined;

  constructor(transport: Transport, name: string) {
    this.transport = transport;
    this.name = name;
  }

  /** Last number that an accepted operation carries; 0 before the first. */
  get lastNumber(): number {
    return this.#lastNumber;
  }

  /** Submits after every training task that came before. */
  enqueueTraining<R>(task: OperationTask<R>): void {
    this.#track(task);
    this.#queue.push(task);
    task.wait(this.#queue.length > 1 || this.#isPumping ? 'operations before it to be submitted' : undefined);
    void this.#pump();
  }

  /** Submits beside everything else. */
  startSampling<R>(task: OperationTask<R>): void {
    this.#track(task);
    void this.#samplingSubmissions.use(async () => {
      if (task.hasEnded) return;
      const isHeld = this.#heldSubmissions < heldSubmissions;
      if (isHeld) this.#heldSubmissions += 1;
      try {
        await this.#submit('sampling', task, { sequenceNumber: 0, clientToken: crypto.randomUUID(), isHeld });
      } catch (error) {
        task.fail(asLoopwrightError(error));
      } finally {
        if (isHeld) this.#heldSubmissions -= 1;
      }
    });
  }

  /** Waits until nothing is queued or open any more; never rejects. */
  async idle(): Promise<void> {
    while (this.#open.size > 0) await Promise.allSettled([...this.#open].map((task) => task.ended));
  }

  /** Ends what was not submitted yet. */
  dropQueued(error: LoopwrightError): void {
    for (const task of this.#queue.splice(0)) task.fail(error);
  }

  #track(task: AnyTask): void {
    this.#open.add(task);
    const forget = () => this.#open.delete(task);
    task.ended.then(forget, forget);
  }

  async #pump(): Promise<void> {
    if (this.#isPumping) return;
    this.#isPumping = true;
    await undefined; // nothing is encoded or sent before the call has returned
    try {
      for (let task = this.#queue.shift(); task !== undefined; task = this.#queue.shift()) {
        if (!task.hasEnded) await this.#submitInTurn(task);
      }
    } finally {
      this.#isPumping = false;
    }
  }

  async #submitInTurn(task: AnyTask): Promise<void> {
    if (task.group.refusal !== undefined) return this.#refuse(task, task.group.refusal);
    if (task.ready !== undefined && !(await this.#isReady(task, task.ready))) return;
    if (task.type === 'optim-step' && this.#missingPass !== undefined) {
      const cause = this.#missingPass;
      this.#missingPass = undefined;
      return task.fail(incompleteGradient(cause));
    }
    const clientToken = crypto.randomUUID();
    let sequenceNumber = this.#lastNumber + 1;
    for (;;) {
      try {
        await this.#submit('training', task, { sequenceNumber, clientToken });
        this.#lastNumber = sequenceNumber;
        this.#uncertainNumber = undefined;
        return;
      } catch (cause) {
        const error = asLoopwrightError(cause);
        if (error.code === 'sequence_conflict' && this.#uncertainNumber === sequenceNumber) {
          this.#lastNumber = sequenceNumber;
          this.#uncertainNumber = undefined;
          sequenceNumber += 1;
          continue;
        }
        this.#uncertainNumber = sequenceNumber;
        this.#refuse(task, error);
        // Behind a server that is gone, every operation would wait out its own budget.
        if (error.code === 'connection_lost' || error.code === 'timeout') this.dropQueued(error);
        return;
      }
    }
  }

  /** Waits for what the task is made of; false when there is nothing to submit any more. */
  async #isReady(task: AnyTask, ready: Promise<unknown>): Promise<boolean> {
    task.wait('the operations that it is made of');
    try {
      await Promise.race([ready, task.ended]);
    } catch (error) {
      if (!task.hasEnded) this.#refuse(task, asLoopwrightError(error));
    }
    return !task.hasEnded;
  }

  /** It never reaches the session, and neither do the others of its group; a step behind must not go without its gradient. */
  #refuse(task: AnyTask, error: LoopwrightError): void {
    if (task.type === 'forward-backward' && error.code !== 'cancelled') this.#missingPass ??= error;
    task.group.refusal = error;
    task.fail(error);
  }

  /** Resolves once the server has accepted; the end is awaited in the background. */
  async #submit(
    kind: Kind,
    task: AnyTask,
    {
      isHeld = false,
      ...submission
    }: { readonly sequenceNumber: number; readonly clientToken: string; readonly isHeld?: boolean },
  ): Promise<void> {
    const { method } = runtimeRoutes[routes[kind].execute];
    const answer = await this.transport.json({
      method,
      path: routePath(routes[kind].execute, { name: this.name }),
      headers: {
        'content-type': 'application/json',
        ...(kind === 'training'
          ? { [headers.trainer]: this.#trainer }
          : { [headers.samplingToken]: submission.clientToken }),
        ...(isHeld ? { [headers.waitSeconds]: String(submissionHoldSeconds) } : {}),
      },
      body: task.send(submission),
      retry: patientPolicy,
      onRetry: (error) => {
        if (task.cancelRequested) throw error;
        task.wait(`the server to answer again (${error.code})`);
      },
    });
    const operationId = operationIdOf(answer);
    const onCancel = () => void this.#cancel(kind, task, operationId);
    task.accepted(operationId, onCancel, kind === 'training' ? submission.sequenceNumber : undefined);
    // Another server than ours answers with the id alone.
    if (typeof Object(answer).status === 'string' && task.take(answer)) return;
    const slots = kind === 'training' ? this.#trainingPolls : this.#samplingPolls;
    void slots.use(() => this.#awaitEnd(kind, task, operationId));
  }

  async #awaitEnd(kind: Kind, task: AnyTask, operationId: string): Promise<void> {
    const { clock } = this.transport;
    const { method } = runtimeRoutes[routes[kind].result];
    const path = routePath(routes[kind].result, { name: this.name, operationId });
    try {
      for (let poll = 0; !task.hasEnded; poll++) {
        const holdSeconds = poll === 0 ? firstHoldSeconds : laterHoldSeconds;
        const askedAt = clock.now();
        const body = await this.transport.json({
          method,
          path,
          headers: { [headers.waitSeconds]: String(holdSeconds) },
          timeoutMs: holdSeconds * 1000 + holdSlackMs,
          retry: patientPolicy,
          onRetry: (error) => task.wait(`the server to answer again (${error.code})`),
        });
        if (task.hasEnded || task.take(body)) return;
        if (clock.now() - askedAt < 1000) await clock.sleep(Math.min(maxPollDelayMs, 50 * 2 ** poll));
      }
    } catch (error) {
      task.fail(asLoopwrightError(error));
    }
  }

  async #cancel(kind: Kind, task: AnyTask, operationId: string): Promise<void> {
    const route = routes[kind].cancel;
    try {
      task.take(
        await this.transport.json({
          method: runtimeRoutes[route].method,
          path: routePath(route, { name: this.name, operationId }),
          retry: briefPolicy,
        }),
      );
    } catch (cause) {
      const message = `${task.name} was cancelled here; the server did not say whether it ran`;
      task.fail(new LoopwrightError({ code: 'cancelled', message, cause }));
    }
  }
}

function operationIdOf(answer: unknown): string {
  const id = typeof answer === 'object' && answer !== null ? Reflect.get(answer, 'operationId') : undefined;
  if (typeof id !== 'string' || id === '') {
    throw complaint({ field: 'operationId', expected: 'an operation id in the answer of the server', got: typeof id });
  }
  return id;
}

function incompleteGradient(cause: LoopwrightError): LoopwrightError {
  return complaint({
    code: 'gradient_incomplete',
    field: 'gradient',
    expected: 'every forwardBackward before the step to be accepted',
    got: `one that was not (${cause.code})`,
    remedy: 'nothing was changed: repeat the passes, then the step',
    cause,
  });
}
