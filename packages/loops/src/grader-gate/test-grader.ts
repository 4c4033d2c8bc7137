/** The grader gate: a grader is tested before a model is trained on it. */
import { complaint } from '@loopwright/protocol';
import type { JsonValue } from '../data/row.js';
import { contentId } from '../data/row-hash.js';
import type { Problem } from '../environments/environment.js';
import { escapeText } from '../escape-text.js';
import { defineTask } from '../tasks/define-task.js';
import { resolveSettings } from '../tasks/settings.js';
import type { Task } from '../tasks/task.js';
import { timeoutWithin, wholeNumber } from '../training/options.js';
import { componentWorth } from './component-worth.js';
import { type GateCasesOptions, gateCases } from './gate-cases.js';
import { gateFindings, kindOf } from './gate-findings.js';
import { gradingTimeoutMs } from './patient-grading.js';
import { runCases } from './run-cases.js';
import { graderSpeed } from './speed.js';
import type { Confusion, GateCase, GateOutcome, GateResult } from './words.js';

export interface TestGraderOptions extends GateCasesOptions {
  /** Times that each completion is graded, to see whether it comes out the same; default 3. One that took too long isn't graded again. */
  readonly repeats?: number;
  /** Of one grading, while no other ends: they may wait for one another; default 30 000. */
  readonly timeoutMs?: number;
  /** Gradings at once, as in a loop; default 16. */
  readonly concurrency?: number;
  /** What the rest of a training step takes, where it is known: what `loopwright preflight` forecasts. */
  readonly stepSeconds?: number;
  /** Names of the components that are about correctness; default: by what they tell apart. */
  readonly correctness?: readonly string[];
  /** Told of each case just before it is graded. */
  readonly onCase?: (each: GateCase) => void;
  /** `of` falls where a completion took too long, by the times that it would have been graded again. */
  readonly onProgress?: (graded: number, of: number) => void;
  /** Milliseconds; default the performance clock. */
  readonly now?: () => number;
}

export interface GraderTest<P extends Problem = Problem> {
  readonly result: GateResult;
  /** Of each case, in order. Content. */
  readonly outcomes: readonly GateOutcome<P>[];
}

/** Wrong cases that are kept in the result. */
const keptWrong = 200;

/**
 * Grades labelled completions, good and bad, and says whether the grader is fit to train on: `fail` where any finding says `stop`.
 *
 * @throws `invalid_argument` for a wrong task or option; `cancelled`; `grader_timeout` where gradings take too long one after another; what the problems of the task throw
 * @example
 * const { result } = await testGrader(task);
 * if (result.outcome === 'fail') for (const { name, seen } of result.findings) console.log(name, seen);
 */
export async function testGrader<P extends Problem>(
  task: Task<P>,
  {
    repeats = 3,
    timeoutMs = gradingTimeoutMs,
    concurrency = 16,
    stepSeconds,
    correctness,
    onCase,
    onProgress,
    now = () => performance.now(),
    ...options
  }: TestGraderOptions = {},
): Promise<GraderTest<P>> {
  const { environment, name, settings, badFromGood: making = {} } = defineTask(task);
  wholeNumber('repeats', repeats, 1);
  timeoutWithin('timeoutMs', timeoutMs);
  wholeNumber('concurrency', concurrency, 1);
  if (stepSeconds !== undefined && !(stepSeconds > 0))
    throw complaint({ field: 'options.stepSeconds', expected: 'a number above 0', got: String(stepSeconds) });
  const { groupSize, groupsPerStep, correctReward } = resolveSettings(settings);
  const { signal, make } = options;
  const cases = await gateCases(task, options);
  const casesHash = hashOf(cases);
  const told = { onCase, onGraded: onProgress };
  const grading = { environment, cases, repeats, concurrency, timeoutMs, correctReward, now, ...told };
  const { outcomes, aloneMs, together } = await runCases({ ...grading, signal });
  const callsPerStep = groupSize * groupsPerStep;
  const speed = graderSpeed({ aloneMs, together, callsPerStep, stepSeconds });
  const components = componentWorth(outcomes, correctness);
  const findings = gateFindings({ outcomes, components, speed });
  const count = (origin: GateCase['origin']): number => cases.filter((each) => each.origin === origin).length;
  const result: GateResult = {
    format: 'loopwright-grader-gate',
    version: 1,
    task: name,
    outcome: findings.some(({ level }) => level === 'stop') ? 'fail' : 'pass',
    cases: { labelled: count('labelled'), made: count('made') },
    casesHash,
    outcomesHash: contentId(outcomes.map(({ grade }) => [grade.status, 'reward' in grade ? grade.reward : null])),
    settings: { repeats, timeoutMs, correctReward, concurrency },
    ...(make === false ? {} : { making }),
    confusion: confusionOf(outcomes),
    kinds: kindCounts(outcomes),
    wrong: outcomes
      .filter(({ isRight }) => !isRight)
      .slice(0, keptWrong)
      .map(wrongCase),
    components,
    speed,
    findings,
  };
  return { result, outcomes };
}

/** Of problems, labels and completions; what isn't JSON in a problem doesn't count. */
function hashOf(cases: readonly GateCase[]): string {
  const ids = cases.map((each) => {
    try {
      // true: that is what JSON.parse makes
      return JSON.parse(JSON.stringify(each)) as JsonValue;
    } catch (cause) {
      throw complaint({
        field: `problem ${escapeText(each.problem.id.slice(0, 40))}`,
        expected: 'one that JSON can hold, so that a change of it is seen',
        got: escapeText(String(cause).split('\n', 1).join('')),
        remedy: 'keep a BigInt as a text, and what refers to itself out of problems',
        cause,
      });
    }
  });
  return contentId(ids);
}

function confusionOf(outcomes: readonly GateOutcome[]): Confusion {
  const count = (label: 'good' | 'bad', accepted: boolean): number =>
    outcomes.filter((each) => each.case.label === label && each.accepted === accepted).length;
  return {
    goodAccepted: count('good', true),
    goodRejected: count('good', false),
    badAccepted: count('bad', true),
    badRejected: count('bad', false),
    failed: outcomes.filter(({ accepted }) => accepted === undefined).length,
  };
}

function kindCounts(outcomes: readonly GateOutcome[]): GateResult['kinds'] {
  const keys = new Map(outcomes.map(({ case: each }) => [`${each.label} ${kindOf(each)}`, each]));
  return [...keys.values()].map((each) => {
    const own = outcomes.filter((other) => other.case.label === each.label && kindOf(other.case) === kindOf(each));
    return {
      kind: kindOf(each),
      label: each.label,
      cases: own.length,
      wrong: own.filter(({ isRight }) => !isRight).length,
    };
  });
}

function wrongCase({ case: each, grade }: GateOutcome): GateResult['wrong'][number] {
  return {
    problem: each.problem.id,
    label: each.label,
    kind: kindOf(each),
    status: grade.status,
    ...('reward' in grade ? { reward: grade.reward } : {}),
  };
}
