/** What is wrong with the problems of a task, before anything is sampled. */
import { counted } from '../counted.js';
import { normalizeText } from '../data/row-hash.js';
import type { Problem } from '../environments/environment.js';
import type { Finding, FindingLevel } from '../findings.js';
import { replaceAnswer } from '../grader-gate/in-text.js';

/** The bands: below the first stop, below the second warn. */
const promptBands = [100, 500] as const;

export interface DataFacts<P extends Problem> {
  readonly train: readonly P[];
  /** Whether the task names its problems; drawn ones aren't counted. */
  readonly isListed: boolean;
  readonly heldOut: readonly P[] | undefined;
  /** Prompts whose tokens and `maxTokens` don't fit the context of the model. */
  readonly tooLong: number;
}

/** In order of discovery. */
export function dataFindings<P extends Problem>({ train, isListed, heldOut, tooLong }: DataFacts<P>): Finding[] {
  const findings: Finding[] = [];
  const add = (level: FindingLevel, name: string, seen: string, remedy: string): void =>
    void findings.push({ level, name: `preflight/${name}`, seen, remedy });
  const [stopBelow, warnBelow] = promptBands;
  if (isListed && train.length < warnBelow)
    add(
      train.length < stopBelow ? 'stop' : 'warn',
      'few-prompts',
      `${counted(train.length, 'prompt')} to train on`,
      `gather ${warnBelow} or more: a model learns few by heart (below ${stopBelow}, do SFT on them)`,
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
  return findings;
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
