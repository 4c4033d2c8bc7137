/** The component that asks a judge. */
import { complaint } from '@loopwright/protocol';
import type { Answer, Problem } from '../../environments/environment.js';
import { type Component, type ComponentOptions, labelled } from '../component.js';
import type { Calibration } from './calibrate.js';
import type { Judge } from './judge.js';

export interface LlmJudgeOptions<P extends Problem> extends ComponentOptions {
  readonly judge: Judge;
  /** Default: the problem's `answer`, where there is any. `null`: there is none. */
  readonly reference?: (problem: P) => string | null;
  /** What is judged; default the answer's text. */
  readonly candidate?: (answer: Answer<P>) => string;
  /**
   * Where the judge's own answer has no score: `unparsed` (the default) scores 0, the lowest, so that to confuse the judge never pays;
   * `grader_error` has no reward.
   */
  readonly onUnreadable?: 'unparsed' | 'grader_error';
  /** Refuses to judge unless a calibration has shown that it agrees well enough with people. */
  readonly require?: {
    readonly calibration: Calibration;
    readonly minAgreement?: number;
    readonly minKappa?: number;
    readonly minSpearman?: number;
  };
}

/**
 * The judge's score, brought from its scale to 0…1. A judge that can't be reached is a `grader_error`, one that is late a `timeout`.
 *
 * @throws `invalid_argument` when its calibration is below what is required, or too small to tell
 */
export function llmJudge<P extends Problem = Problem>(options: LlmJudgeOptions<P>): Component<P> {
  const { judge, reference, candidate, onUnreadable = 'unparsed', require: required } = options;
  if (required !== undefined) checkCalibration(required);
  const { min, max } = judge.scale;
  return {
    ...labelled('judge', options),
    timeoutMs: Number.POSITIVE_INFINITY, // the wait for a place has no limit; attempts have theirs
    score: async (answer, { signal }) => {
      const { problem, text } = answer;
      const right = reference === undefined ? problem.answer : reference(problem);
      const rating = await judge.rate(
        {
          question: problem.question,
          candidate: candidate?.(answer) ?? text,
          ...(typeof right === 'string' && right.trim() !== '' ? { reference: right } : {}),
        },
        signal,
      );
      const votes = rating.votes.map((vote) => vote ?? 'unreadable').join(', ');
      if (rating.status === 'ok')
        return { status: 'ok', score: (rating.score - min) / (max - min), trace: `votes: ${votes}` };
      if (onUnreadable === 'unparsed')
        return { status: 'unparsed', reason: `no score in the answer of the judge (votes: ${votes})` };
      throw complaint({
        code: 'operation_failed',
        field: 'judge',
        expected: 'a score in the form that was asked for',
        got: `votes: ${votes}`,
        remedy: 'try a larger model, more tokens, or the other form',
      });
    },
  };
}

function checkCalibration({ calibration, ...least }: NonNullable<LlmJudgeOptions<Problem>['require']>): void {
  for (const [option, name] of [
    ['minAgreement', 'agreement'],
    ['minKappa', 'kappa'],
    ['minSpearman', 'spearman'],
  ] as const) {
    const wanted = least[option];
    const got = calibration[name];
    if (wanted !== undefined && !(got >= wanted))
      throw complaint({
        field: `require.${option}`,
        expected: `a ${name} of at least ${wanted}`,
        got: `${got.toFixed(3)} on ${calibration.count} answers`,
        remedy: 'mend the rubric, or take another judge',
      });
  }
}
