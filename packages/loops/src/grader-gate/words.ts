/** The words of the grader gate: what is tested, what came of it, and what is kept. */
import type { Grade, Problem } from '../environments/environment.js';
import type { Finding } from '../findings.js';
import type { LabelledCompletion } from '../tasks/task.js';
import type { BadFromGoodOptions } from './bad-kinds.js';

/** A case of the gate. */
export type GateCase<P extends Problem = Problem> = LabelledCompletion<P> & {
  /** Labelled by people, or made by `badFromGood` or from a problem's answer. */
  readonly origin: 'labelled' | 'made';
};

/** What a grader said of a completion; `unfinished`: the episode went on after the last labelled answer, and has no grade. */
export type GateGrade = Grade | { readonly status: 'unfinished' };

/** A case, and what the grader made of it. Content: for people, not for logs. */
export interface GateOutcome<P extends Problem = Problem> {
  readonly case: GateCase<P>;
  /** Of the first time. */
  readonly grade: GateGrade;
  /** Of every time: fewer than asked for where one took too long. */
  readonly grades: readonly GateGrade[];
  /** Whether the grader took it for right; undefined where it failed. */
  readonly accepted: boolean | undefined;
  /** Whether that is what the label says. */
  readonly isRight: boolean;
  /** Whether every repeat that there was came to the same reward, status and scores. */
  readonly isStable: boolean;
}

/** Counts of cases. */
export interface Confusion {
  readonly goodAccepted: number;
  readonly goodRejected: number;
  readonly badAccepted: number;
  readonly badRejected: number;
  /** Of either label: the grader threw, took too long, or gave no grade. */
  readonly failed: number;
}

export interface GraderSpeed {
  /** Milliseconds of single calls, one after another. */
  readonly alone: { readonly calls: number; readonly p50Ms: number; readonly p95Ms: number; readonly meanMs: number };
  /** The same work with `concurrency` calls at once; absent with one repeat of few cases, when nothing ran so. */
  readonly together?: {
    readonly calls: number;
    readonly concurrency: number;
    readonly callsPerSecond: number;
    /** Where there was more than one at once. */
    readonly overlap?: CallOverlap;
  };
  /** Prompts × completions. */
  readonly callsPerStep: number;
  /** Grading adds so much to a step: one call after another, and with `concurrency` at once as measured. */
  readonly secondsAdded: { readonly alone: number; readonly together?: number };
  /** A step whose rest takes so long has 10 % of its time in grading, with `concurrency` at once. */
  readonly secondsFor10Percent: number;
  /** Where the rest of a step is known to take `stepSeconds`: how much faster than one call after another keeps grading within 10 %. */
  readonly parallelism?: {
    readonly stepSeconds: number;
    readonly neededSpeedUp: number;
    /** Calls at once that give it, by the overlap that was measured; absent where none do, or nothing was measured. */
    readonly needed?: number;
  };
}

/** What calls at once were worth. */
export interface CallOverlap {
  /** Against one after another: from about 1, where they don't overlap, to as many as there were. */
  readonly speedUp: number;
  /**
   * Share of a call that goes on alone, by Amdahl's law: 0 where calls cost nothing to each other, 1 where they wait for one another, as for the thread
   * that they share. However many there are, the speed-up is at most 1 / share.
   */
  readonly serialShare: number;
  /** Whether calls at once are hardly worth more than one after another: never twice as much, however many there are. */
  readonly isSerial: boolean;
}

/** What is kept of a case: no content. */
export interface WrongCase {
  readonly problem: string;
  readonly label: 'good' | 'bad';
  readonly kind: string;
  readonly status: string;
  readonly reward?: number;
}

/** The gate as it is written to a file. Nothing in it is content, but ids of problems. */
export interface GateResult {
  readonly format: 'loopwright-grader-gate';
  readonly version: 1;
  readonly task: string;
  readonly outcome: 'pass' | 'fail';
  readonly cases: { readonly labelled: number; readonly made: number };
  /** Of problems, labels and completions. */
  readonly casesHash: string;
  /** Of what the grader said of each case: another version of the grader has another, as far as the cases can tell. */
  readonly outcomesHash: string;
  readonly settings: {
    readonly repeats: number;
    readonly timeoutMs: number;
    readonly correctReward: number;
    readonly concurrency: number;
  };
  /** How bad cases were made; absent where none were. */
  readonly making?: BadFromGoodOptions;
  readonly confusion: Confusion;
  readonly kinds: readonly {
    readonly kind: string;
    readonly label: 'good' | 'bad';
    readonly cases: number;
    readonly wrong: number;
  }[];
  readonly wrong: readonly WrongCase[];
  readonly components: readonly ComponentWorth[];
  readonly speed: GraderSpeed;
  readonly findings: readonly Finding[];
}

/** What a component is worth, and what for. */
export interface ComponentWorth {
  readonly name: string;
  readonly weight: number;
  /** `correctness`: its scores tell good completions from wrong ones in the right form; `form`: they don't. */
  readonly role: 'correctness' | 'form';
  /** |weight| × the largest score that was seen, at least 1. */
  readonly worth: number;
}
