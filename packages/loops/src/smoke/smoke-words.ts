/** The words of a smoke test: its parts, and what is said of each. */

/** In the order in which they run. */
export const smokeParts = ['grader', 'data', 'sampling', 'step', 'checkpoint and restore', 'tracking'] as const;
export type SmokePartName = (typeof smokeParts)[number];

/** What came of a part. Nothing in it is content, save perhaps the message of `error`. */
export type SmokePart = {
  readonly name: SmokePartName;
  /** What was done, or seen where it failed. */
  readonly seen: string;
  readonly milliseconds: number;
} & (
  | { readonly status: 'pass' }
  /** `error` where something threw. */
  | { readonly status: 'fail'; readonly remedy: string; readonly error?: unknown }
  /** It needs what another part failed to make. */
  | { readonly status: 'not-run'; readonly remedy: string }
);

/** How far a part is: gradings, answers or steps of all, where they are counted. */
export interface SmokeProgress {
  readonly part: SmokePartName;
  readonly done: number;
  readonly of?: number;
}

export interface SmokeReport {
  readonly task: string;
  /** `fail` where any part did not pass. */
  readonly outcome: 'pass' | 'fail';
  readonly parts: readonly SmokePart[];
}

/** What a part throws where it can't be run for what another makes. */
export class SmokeNeeds extends Error {
  readonly part: SmokePartName;

  constructor(part: SmokePartName) {
    super(`needs ${part}`);
    this.part = part;
  }
}

/** What a part throws where it has seen something wrong. */
export class SmokeFailure extends Error {
  readonly remedy: string;

  constructor(seen: string, remedy: string, cause?: unknown) {
    super(seen, cause === undefined ? {} : { cause });
    this.remedy = remedy;
  }
}
