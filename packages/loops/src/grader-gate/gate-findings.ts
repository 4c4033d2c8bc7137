/** What is wrong with a grader, by its outcomes. */
import { isFailure } from '../environments/environment.js';
import { escapeText } from '../escape-text.js';
import { byLevel, type Finding } from '../findings.js';
import { mean } from '../statistics/advantages.js';
import { isRightForm } from './component-worth.js';
import type { CallOverlap, ComponentWorth, GateOutcome, GraderSpeed } from './words.js';

/** Fewer labelled by people than this, of either label, say little about what was not thought of. */
const fewLabelled = 10;

export interface Judged {
  readonly outcomes: readonly GateOutcome[];
  readonly components: readonly ComponentWorth[];
  readonly speed: GraderSpeed;
}

/** The gravest first, each once. */
export function gateFindings(judged: Judged): Finding[] {
  return byLevel([
    ...confusion(judged.outcomes),
    ...failures(judged.outcomes),
    ...form(judged),
    ...slowness(judged.speed),
    ...coverage(judged.outcomes),
  ]);
}

function confusion(outcomes: readonly GateOutcome[]): Finding[] {
  const findings: Finding[] = [];
  const good = outcomes.filter((each) => each.case.label === 'good');
  const bad = outcomes.filter((each) => each.case.label === 'bad');
  const rewards = outcomes.flatMap(({ grade }) => ('reward' in grade ? [grade.reward] : []));
  if (rewards.length > 1 && new Set(rewards).size === 1 && good.length > 0 && bad.length > 0) {
    return [
      {
        name: 'grader/constant',
        level: 'stop',
        seen: `all ${rewards.length} graded completions have the reward ${rewards[0]}`,
        remedy: 'a grader that tells nothing apart teaches nothing: check what it reads',
      },
    ];
  }
  const accepted = bad.filter((each) => each.accepted === true);
  if (accepted.length > 0) {
    findings.push({
      name: 'grader/accepts-bad',
      level: 'stop',
      seen: `${accepted.length} of ${bad.length} bad completions were taken for right (${kindsOf(accepted)})`,
      remedy:
        'mend the grader, or a model will learn to write these; where such a completion is right in this task, leave its kind out (badFromGood.without of the task)',
    });
  }
  const rejected = good.filter((each) => each.accepted === false);
  if (rejected.length > 0) {
    findings.push({
      name: 'grader/rejects-good',
      level: 'stop',
      seen: `${rejected.length} of ${good.length} good completions were not taken for right (${kindsOf(rejected)})`,
      remedy: 'mend the grader, or set correctReward to the reward of a right answer',
    });
  }
  return findings;
}

function failures(outcomes: readonly GateOutcome[]): Finding[] {
  const count = (status: string): number => outcomes.filter(({ grade }) => grade.status === status).length;
  const findings: Finding[] = [];
  const errors = count('grader_error');
  if (errors > 0) {
    findings.push({
      name: 'grader/fails',
      level: 'stop',
      seen: `${errors} of ${outcomes.length} completions could not be graded: the grader threw, or gave no grade`,
      remedy: 'a grader judges whatever a model writes, empty and broken answers too: return status unparsed for them',
    });
  }
  const late = count('timeout');
  if (late > 0) {
    findings.push({
      name: 'grader/timeout',
      level: 'stop',
      seen: `${late} of ${outcomes.length} completions were not graded in their time`,
      remedy: 'bound the work of the grader, or give it more time',
    });
  }
  const unstable = outcomes.filter(({ isStable }) => !isStable);
  if (unstable.length > 0) {
    findings.push({
      name: 'grader/not-deterministic',
      level: 'stop',
      seen: `${unstable.length} of ${outcomes.length} completions were graded otherwise when they were graded again`,
      remedy: 'take randomness, the clock and shared state out of the grader; a judge model needs temperature 0',
    });
  }
  return findings;
}

/**
 * The rule: all that form can earn is worth less than correctness alone. By components where there are any: Σ worth of form < Σ worth of
 * correctness. And by rewards, of any grader: what wrong answers in the right form get above empty ones is less than what right
 * answers get above them (means; of the kind of wrong answers that gets most).
 */
function form({ outcomes, components }: Judged): Finding[] {
  const worth = (role: ComponentWorth['role']): number =>
    components.reduce((sum, each) => (each.role === role ? sum + each.worth : sum), 0);
  const [correctness, forms] = [worth('correctness'), worth('form')];
  const names = (role: ComponentWorth['role']): string =>
    components.flatMap((each) => (each.role === role && each.weight !== 0 ? [each.name] : [])).join(', ') || 'none';
  const hasForms = outcomes.some(isRightForm);
  const finding = (seen: string): Finding[] => [
    {
      name: 'grader/form-outweighs-correctness',
      level: 'stop',
      seen,
      remedy:
        'lower the weights of form: a model finds it first, and stays with it when it pays as well as being right; where such an answer is worth its reward in this task, leave its kind out (badFromGood.without of the task)',
    },
  ];
  if (components.length > 0 && hasForms && forms > 0 && forms >= correctness)
    return finding(
      `form (${names('form')}) is worth up to ${round(forms)}, correctness (${names('correctness')}) ${round(correctness)}`,
    );
  const [right, empty] = [
    meanReward(outcomes.filter((each) => each.case.label === 'good')),
    meanReward(outcomes.filter((each) => each.case.kind === 'empty')),
  ];
  const best = bestPaidForm(outcomes);
  if (best === undefined) return [];
  const [ofForm, ofBeingRight] = [best.reward - empty, right - best.reward];
  if (ofForm > 0 && ofForm >= ofBeingRight)
    return finding(
      `wrong answers in the right form (${best.kind}) get ${round(best.reward)} on average (empty ones ${round(empty)}), right ones ${round(right)}`,
    );
  return [];
}

/**
 * The kind of wrong answers in the right form that gets most: a model finds the one that pays, and a mean over all kinds would hide it
 * behind those that pay nothing. Those that were taken for right are a finding of their own.
 */
function bestPaidForm(
  outcomes: readonly GateOutcome[],
): { readonly kind: string; readonly reward: number } | undefined {
  const wrong = outcomes.filter((each) => isRightForm(each) && each.accepted === false);
  return [...new Set(wrong.map((each) => kindOf(each.case)))]
    .map((kind) => ({ kind, reward: meanReward(wrong.filter((each) => kindOf(each.case) === kind)) }))
    .filter(({ reward }) => !Number.isNaN(reward)) // none was graded
    .sort((a, b) => b.reward - a.reward)[0];
}

/** NaN where none was graded. */
function meanReward(outcomes: readonly GateOutcome[]): number {
  return mean(outcomes.flatMap(({ grade }) => ('reward' in grade ? [grade.reward] : [])));
}

function slowness({ parallelism, secondsAdded, together, callsPerStep }: GraderSpeed): Finding[] {
  if (parallelism === undefined) return [];
  const added = secondsAdded.together ?? secondsAdded.alone;
  if (added <= parallelism.stepSeconds / 9) return [];
  const atOnce = together === undefined ? 'one after another' : `${together.concurrency} at once`;
  return [
    {
      name: 'grader/slow',
      level: 'warn',
      seen: `${callsPerStep} calls a step take ${round(added)} s (${atOnce}), more than 10 % of a step whose rest takes ${round(parallelism.stepSeconds)} s`,
      remedy: slowRemedy(parallelism, together?.overlap),
    },
  ];
}

/** More calls at once are advised only where they were seen to help: a grader that keeps the thread busy is as slow with a hundred of them. */
function slowRemedy(
  { needed, neededSpeedUp }: NonNullable<GraderSpeed['parallelism']>,
  overlap: CallOverlap | undefined,
): string {
  if (needed !== undefined) return `make the grader faster, or let ${needed} calls run at once`;
  const faster = `make the grader ${round(neededSpeedUp)} × as fast as one call after another`;
  if (overlap === undefined) return `${faster}; a test with --concurrency above 1 tells how much calls at once help`;
  return overlap.isSerial
    ? `${faster}: calls at once don't help, as the processor, or one place that they share, takes them one by one; do less work, or move it to other processes (a sandbox, a server)`
    : `${faster}: calls at once give ${round(overlap.speedUp)} ×; give it more places to work in (workers of its sandbox, servers)`;
}

function coverage(outcomes: readonly GateOutcome[]): Finding[] {
  const count = (label: string, origin?: string): number =>
    outcomes.filter((each) => each.case.label === label && (origin === undefined || each.case.origin === origin))
      .length;
  const missing = (['good', 'bad'] as const).filter((label) => count(label) === 0);
  if (missing.length > 0) {
    return [
      {
        name: 'grader/no-cases',
        level: 'stop',
        seen: `no ${missing.join(' and no ')} completions`,
        remedy: 'label completions in the cases of the task; badFromGood makes bad ones from good',
      },
    ];
  }
  const [good, bad] = [count('good', 'labelled'), count('bad', 'labelled')];
  if (good >= fewLabelled && bad >= fewLabelled) return [];
  return [
    {
      name: 'grader/few-cases',
      level: 'warn',
      seen: `${good} good and ${bad} bad completions are labelled by people; the others were made`,
      remedy: `label ${fewLabelled} of each that a model wrote: graders fail on what nobody thought of`,
    },
  ];
}

/** `unit 3, comma 1`. */
export function kindsOf(outcomes: readonly GateOutcome[]): string {
  const counts = new Map<string, number>();
  for (const { case: each } of outcomes) {
    const kind = kindOf(each);
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return [...counts].map(([kind, count]) => `${escapeText(kind)} ${count}`).join(', ');
}

/** What a case is counted under. */
export function kindOf({ kind, label }: GateOutcome['case']): string {
  return kind ?? label;
}

/** The failure of a grade, where it has one. */
export function failureOf({ grade }: GateOutcome): unknown {
  return grade.status !== 'unfinished' && isFailure(grade) ? grade.error : undefined;
}

function round(value: number): string {
  return String(Number(value.toPrecision(3)));
}
