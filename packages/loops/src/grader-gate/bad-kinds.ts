/** The kinds of bad completions, and how they are made: what a task may set. */

/** What is made, in this order; a kind that makes no sense for a case is left out. */
export const badKinds = [
  /** Nothing at all. */
  'empty',
  /** Cut before the answer, or within it. */
  'truncated',
  /** The same words, another answer; of a program, one that returns nothing. */
  'wrong-answer',
  /** `95 or 85 or 95` for `85`: the right one among others, neither first nor last. */
  'several-answers',
  /** The question itself. */
  'prompt-echo',
  /** `-85` for `85`. */
  'sign',
  /** `8,5` for `85`, `1.234` for `1234`, `314` for `3.14`. */
  'comma',
  /** `5 m` for `5 km`; only where the answer carries a unit, or `unit` names one. */
  'unit',
  /** `85.01` for `85`, `3.15` for `3.14`; by `epsilon` where that is set. */
  'epsilon',
  /** A wrong answer, and a request to whoever grades it. */
  'injected-instruction',
  /** The words of a test report in place of an answer; of a program, printed. */
  'printed-verdict',
  /** Programs only: ends with success before any test. */
  'early-exit',
  /** Programs only: returns something that is equal to everything. */
  'always-equal',
] as const;
export type BadKind = (typeof badKinds)[number];

export interface BadFromGoodOptions {
  /** Kinds that are right, or that can't be told, in this task. */
  readonly without?: readonly BadKind[];
  /** Right answers of other problems, which are wrong here: taken where a text answer has no digit to change. */
  readonly otherAnswers?: readonly string[];
  /** Added to the number by `epsilon`: set it above the tolerance that the grader is meant to have. */
  readonly epsilon?: number;
  /** Put behind a bare number by `unit`, where that makes it wrong. */
  readonly unit?: string;
}
