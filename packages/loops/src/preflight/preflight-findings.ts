/** Reasons not to train yet, each with what to do. */
import type { Problem } from '../environments/environment.js';
import { byLevel, type Finding, type FindingLevel } from '../findings.js';
import { type DataFacts, dataFindings } from './data-findings.js';
import { shareOfForm } from './format-gap.js';
import type { PreflightReport, PromptRate } from './words.js';

export interface Measured<P extends Problem>
  extends Omit<PreflightReport, 'findings' | 'outcome' | 'task'>,
    DataFacts<P> {
  readonly rates: readonly PromptRate[];
}

/** The gravest first, each once. */
export function preflightFindings<P extends Problem>(measured: Measured<P>): Finding[] {
  const { rates, passRate, deadGroups, formatGap, forecast, step } = measured;
  const findings: Finding[] = [];
  const add = (level: FindingLevel, name: string, seen: string, remedy: string): void =>
    void findings.push({ level, name: `preflight/${name}`, seen, remedy });
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
  const form = formFinding(formatGap);
  if (form !== undefined) findings.push(form);
  if (sampled > 0 && truncated >= 0.2 * sampled && formatGap.unparsedShare > 0)
    add(
      'warn',
      'truncated',
      `${truncated} of ${sampled} completions were cut by maxTokens`,
      'raise maxTokens, or end answers by a stop text',
    );
  const { memory } = forecast;
  if (memory !== undefined && memory.high > memory.limit)
    add(
      memory.expected > memory.limit ? 'stop' : 'warn',
      'memory',
      `up to ${gigabytes(memory.expected)} of memory with answers of twice the mean length, up to ${gigabytes(memory.high)} with the longest; the engine may use ${gigabytes(memory.limit)}`,
      'lower groupsPerStep, groupSize or maxTokens, take a smaller model, or raise the limit (serve --max-memory)',
    );
  const stepMs = step === undefined ? 0 : step.collectMs + step.passMs + step.updateMs;
  if (step !== undefined && step.graderMs > 0.1 * (stepMs - step.graderMs))
    add(
      'warn',
      'slow-grader',
      `a step waits ${percent(step.graderMs / stepMs)} of its time for the grader alone`,
      'make the grader quicker, or let more gradings go at once: run loopwright grader test --step-seconds',
    );
  return byLevel([...findings, ...dataFindings(measured)]);
}

/** Of what was measured, where it was; else of the shares, which also differ where it is the easy prompts that are read. */
function formFinding({ measured, ...shares }: PreflightReport['formatGap']): Finding | undefined {
  const { unparsedShare, ofParsed, ofAll } = shares;
  const name = 'preflight/format-gap';
  if (measured === undefined) {
    if (unparsedShare < 0.2 || ofParsed - ofAll < 0.1) return undefined;
    return {
      ...{ level: 'warn', name },
      seen: `${percent(unparsedShare)} of completions can't be read; of those that can, ${percent(ofParsed)} are right, of all ${percent(ofAll)}`,
      remedy: `measure what their form is worth (--format-gap); if it is form, ${formRemedy}`,
    };
  }
  const { verdict, compared, prompts, mostDraws } = measured;
  if (verdict === 'not-form') return undefined;
  if (verdict === 'form' && compared !== undefined)
    return {
      ...{ level: 'warn', name },
      seen: `a readable form is worth ${points(compared.difference)} of pass rate, ${percent(shareOfForm(compared))} of what is missing`,
      remedy: formRemedy,
    };
  if (unparsedShare === 0) return undefined;
  if (prompts.neverRead > 0.5 * prompts.measured)
    return {
      ...{ level: 'warn', name },
      seen: `of ${prompts.neverRead} of ${prompts.measured} prompts no answer could be read in ${mostDraws} draws`,
      remedy: `${formRemedy}; then measure again`,
    };
  return {
    ...{ level: 'note', name },
    seen: 'whether a readable form is worth five points of pass rate is not distinguishable yet',
    remedy: 'measure more prompts (--prompts, --all), or allow more draws of an answer (--draws)',
  };
}

const formRemedy =
  'ask for it first: an example in the prompt, constrained output where what serves the model has it, or a short SFT on the form; RL second';

function points(difference: number): string {
  return `${(100 * difference).toFixed(1)} points`;
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}
