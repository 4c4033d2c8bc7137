/** Reasons not to train yet, each with what to do. */
import { normalizeText } from '../data/row-hash.js';
import type { Problem } from '../environments/environment.js';
import { byLevel, type Finding, type FindingLevel } from '../findings.js';
import { replaceAnswer } from '../grader-gate/in-text.js';
import type { PreflightReport, PromptRate } from './words.js';

/** The bands: below the first stop, below the second warn. */
const promptBands = [100, 500] as const;

export interface Measured<P extends Problem> extends Omit<PreflightReport, 'findings' | 'outcome' | 'task'> {
  readonly train: readonly P[];
  /** Whether the task names its problems; drawn ones aren't counted. */
  readonly isListed: boolean;
  readonly heldOut: readonly P[] | undefined;
  readonly rates: readonly PromptRate[];
  /** Prompts whose tokens and `maxTokens` don't fit the context of the model. */
  readonly tooLong: number;
}

/** The gravest first, each once. */
export function preflightFindings<P extends Problem>(measured: Measured<P>): Finding[] {
  const { train, isListed, heldOut, rates, passRate, deadGroups, formatGap, tooLong } = measured;
  const findings: Finding[] = [];
  const add = (level: FindingLevel, name: string, seen: string, remedy: string): void =>
    void findings.push({ level, name: `preflight/${name}`, seen, remedy });
  const [stopBelow, warnBelow] = promptBands;
  if (isListed && train.length < warnBelow)
    add(
      train.length < stopBelow ? 'stop' : 'warn',
      'few-prompts',
      `${train.length} prompts to train on`,
      `gather ${warnBelow} or more: a model learns few by heart (below ${stopBelow}, do SFT on them)`,
    );
  const sum = (of: (rate: PromptRate) => number): number => rates.reduce((total, rate) => total + of(rate), 0);
  const [sampled, errors, truncated] = [sum((r) => r.sampled), sum((r) => r.graderErrors), sum((r) => r.truncated)];
  if (errors > 0)
    add(
      errors > 0.05 * sampled ? 'stop' : 'warn',
      'grader-fails',
      `${errors} of ${sampled} completions could not be graded`,
      'mend the grader: run loopwright grader test',
    );
  if (passRate.n > 0 && passRate.correct === 0)
    add(
      'stop',
      'never-right',
      `none of ${passRate.n} completions is right`,
      'do SFT on right answers first, or take easier prompts: rewards that never come teach nothing',
    );
  else if (passRate.share >= 0.95)
    add(
      'stop',
      'solved',
      `${percent(passRate.share)} of ${passRate.n} completions are right`,
      "don't train on these: take harder prompts",
    );
  else if (deadGroups.expectedShare > 0.5)
    add(
      'warn',
      'dead-groups',
      `${percent(deadGroups.expectedShare)} of groups of ${deadGroups.groupSize} are expected to be all right or all wrong`,
      'train on the prompts from 10 to 90 % (the filtered file), or with larger groups',
    );
  if (formatGap.unparsedShare >= 0.2 && formatGap.ofParsed - formatGap.ofAll >= 0.1)
    add(
      'warn',
      'format-gap',
      `${percent(formatGap.unparsedShare)} of completions can't be read; of those that can, ${percent(formatGap.ofParsed)} are right, of all ${percent(formatGap.ofAll)}`,
      'try constrained output or an example in the prompt first: form is cheaper to ask for than to train',
    );
  if (sampled > 0 && truncated >= 0.2 * sampled && formatGap.unparsedShare > 0)
    add(
      'warn',
      'truncated',
      `${truncated} of ${sampled} completions were cut by maxTokens`,
      'raise maxTokens, or end answers by a stop text',
    );
  if (tooLong > 0)
    add(
      'stop',
      'prompt-too-long',
      `${tooLong} of ${train.length} prompts leave no room for maxTokens`,
      'shorten or leave out these prompts, lower maxTokens, or take a model with a longer context',
    );
  const leaks = answersInPrompts(train);
  if (leaks !== undefined)
    add(
      'stop',
      'answer-in-prompt',
      `${leaks.own} of ${leaks.of} prompts hold their own answer, ${leaks.others} that of another prompt`,
      'take the answer out of the prompt',
    );
  const keys = train.map(({ question }) => normalizeText(question));
  const distinct = new Set(keys);
  if (distinct.size < keys.length)
    add(
      'warn',
      'duplicates',
      `${keys.length - distinct.size} of ${keys.length} prompts are there twice`,
      'leave duplicates out, or they count more than others',
    );
  if (heldOut === undefined)
    add(
      'warn',
      'no-held-out',
      'no problems are held out',
      'hold some out (data.split): without them nobody sees whether the model learns or remembers',
    );
  else {
    const shared = heldOut.filter(({ question }) => distinct.has(normalizeText(question))).length;
    if (shared > 0)
      add(
        'stop',
        'held-out-leak',
        `${shared} of ${heldOut.length} held-out prompts are trained on too`,
        'split by prompt (data.split), so that both sets have none in common',
      );
  }
  return byLevel(findings);
}

/**
 * Prompts that hold their own answer, where that is no chance: at least a tenth of all more, and twice as many, as hold the answer of the
 * prompt after the next one. So sums such as `10-5=` and choices that are all named in the prompt are no leak.
 */
function answersInPrompts(problems: readonly Problem[]) {
  if (problems.length < 3) return undefined;
  const holds = (question: string, answer: string): boolean =>
    answer.trim() !== '' && replaceAnswer(normalizeText(question), normalizeText(answer), '\u0000') !== undefined;
  const own = problems.filter(({ question, answer }) => holds(question, answer)).length;
  const others = problems.filter(({ question }, i) =>
    holds(question, problems[(i + 2) % problems.length]!.answer),
  ).length;
  return own - others >= 0.1 * problems.length && own >= 2 * others ? { own, others, of: problems.length } : undefined;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}
