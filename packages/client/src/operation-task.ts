/** One operation of the server, seen from here: from the local queue to its end. */
import { LoopwrightError, type OperationType } from '@loopwright/protocol';
import type { JsonObject, OperationOutcome, OperationProgress } from '@loopwright/wires/sagemaker';

export type OperationState = 'queued' | 'submitted' | 'running' | 'completed' | 'failed' | 'cancelled';

export interface TaskWork<R> {
  readonly type: OperationType;
  /** The request body; numbers of training operations come in as they are submitted. */
  readonly encode: (submission: { readonly sequenceNumber: number; readonly clientToken: string }) => JsonObject;
  readonly decode: (body: unknown) => OperationOutcome<R>;
  readonly group?: TaskGroup;
  /** What its body is made of: it and the tasks behind it are not submitted before this has resolved. */
  readonly ready?: Promise<unknown>;
}

/** Tasks that stand for one call, such as the parts of a large batch: when one is refused, the others are not sent. */
export interface TaskGroup {
  refusal?: LoopwrightError;
}

export class OperationTask<R> {
  readonly type: OperationType;
  readonly group: TaskGroup;
  readonly ready: Promise<unknown> | undefined;
  /** Never left unhandled. */
  readonly ended: Promise<R>;
  readonly #decode: TaskWork<R>['decode'];
  /** Dropped, and the data with it, once the server has taken the operation. */
  #encode: TaskWork<R>['encode'] | undefined;
  #state: OperationState = 'queued';
  #isSending = false;
  #waitingFor: string | undefined;
  #operationId: string | undefined;
  #sequenceNumber: number | undefined;
  #cancelRequested = false;
  #onCancel: (() => void) | undefined;
  #resolve!: (result: unknown) => void; // set by the promise below, before the constructor ends
  #reject!: (error: LoopwrightError) => void;

  constructor(work: TaskWork<R>) {
    this.type = work.type;
    this.#encode = work.encode;
    this.#decode = work.decode;
    this.group = work.group ?? {};
    this.ready = work.ready;
    this.ended = new Promise<R>((resolve, reject) => {
      this.#resolve = resolve as (result: unknown) => void; // true: only `succeed` calls it, with an R
      this.#reject = reject;
    });
    this.ended.catch(() => undefined);
  }

  get state(): OperationState {
    return this.#state;
  }
  get waitingFor(): string | undefined {
    return this.#waitingFor;
  }
  get operationId(): string | undefined {
    return this.#operationId;
  }
  get hasEnded(): boolean {
    return this.#state === 'completed' || this.#state === 'failed' || this.#state === 'cancelled';
  }
  get cancelRequested(): boolean {
    return this.#cancelRequested;
  }
  /** For messages: the type, with the sequence number once there is one. */
  get name(): string {
    return this.#sequenceNumber === undefined ? this.type : `${this.type} (sequence number ${this.#sequenceNumber})`;
  }

  /** Says why it waits, in words for people. */
  wait(reason: string | undefined): void {
    this.#waitingFor = reason;
  }

  /** The body of its submission; from here on only the server can cancel it. */
  send(submission: { readonly sequenceNumber: number; readonly clientToken: string }): string {
    this.#isSending = true;
    this.#waitingFor = 'the server to accept it';
    if (this.#encode === undefined)
      throw new LoopwrightError({ code: 'internal', message: `${this.name} was sent twice` });
    return JSON.stringify(this.#encode(submission));
  }

  /** The server has taken it. `onCancel` is called when someone wants it cancelled from now on, or has wanted it before. */
  accepted(operationId: string, onCancel: () => void, sequenceNumber?: number): void {
    this.#state = 'submitted';
    this.#waitingFor = 'its turn';
    this.#operationId = operationId;
    this.#sequenceNumber = sequenceNumber;
    this.#onCancel = onCancel;
    this.#encode = undefined;
    if (this.#cancelRequested) onCancel();
  }

  progress({ state, waitingFor, position }: OperationProgress): void {
    if (this.hasEnded) return;
    this.#state = state === 'running' ? 'running' : 'submitted';
    this.#waitingFor = waitingFor ?? (position === undefined ? undefined : `${position} operations before it`);
  }

  succeed(result: R): void {
    if (this.hasEnded) return;
    this.#end('completed');
    this.#resolve(result);
  }

  fail(error: LoopwrightError): void {
    if (this.hasEnded) return;
    this.#end(error.code === 'cancelled' ? 'cancelled' : 'failed');
    this.#reject(error);
  }

  /** What the server says of it; true when that was the end. */
  take(body: unknown): boolean {
    const outcome = this.#decode(body);
    switch (outcome.status) {
      case 'Pending':
      case 'InProgress':
        this.progress(outcome.progress);
        return false;
      case 'Completed':
        this.succeed(outcome.result);
        return true;
      case 'Failed':
      case 'Skipped':
        this.fail(outcome.error);
        return true;
      default:
        return outcome satisfies never;
    }
  }

  /**
   * Before the submission: it ends here and is never sent, and its number goes to the next operation.
   * During it or after: the server is asked, and its answer says how it ended.
   */
  cancel(): void {
    if (this.hasEnded || this.#cancelRequested) return;
    this.#cancelRequested = true;
    if (this.#onCancel !== undefined) this.#onCancel();
    else if (!this.#isSending) {
      this.fail(
        new LoopwrightError({ code: 'cancelled', message: `${this.name} was cancelled before it was submitted` }),
      );
    }
  }

  #end(state: OperationState): void {
    this.#state = state;
    this.#waitingFor = undefined;
    this.#encode = undefined;
  }
}
