/** Calls of the fake engine that wait until a test lets them go on. */

/** What the fake can be made to wait at: the method names of Engine that do work. */
export type FakeMethod =
  | 'createSession'
  | 'closeSession'
  | 'pass'
  | 'optimStep'
  | 'saveWeights'
  | 'saveState'
  | 'loadState'
  | 'snapshot'
  | 'restore'
  | 'sample'
  | 'computeLogprobs'
  | 'loadSampler';

/** One call, held at its start until `release` or `fail`. */
export interface Hold {
  /** Resolves when a call has arrived and waits. */
  readonly entered: Promise<void>;
  /** Lets the call go on. */
  release(): void;
  /** Makes the call reject. */
  fail(error: Error): void;
}

export interface PendingHold extends Hold {
  enter(): void;
  readonly released: Promise<void>;
}

export function pendingHold(): PendingHold {
  let enter: () => void = () => {};
  let release: () => void = () => {};
  let fail: (error: Error) => void = () => {};
  const entered = new Promise<void>((resolve) => {
    enter = resolve;
  });
  const released = new Promise<void>((resolve, reject) => {
    release = resolve;
    fail = reject;
  });
  released.catch(() => {}); // may be failed before a call waits for it
  return { entered, released, enter, release, fail };
}
