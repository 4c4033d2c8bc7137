/** Graders that fail, or say the same of everything; batches that teach nothing. */
import { LoopwrightError } from '@loopwright/protocol';
import type { History } from '../history.js';
import type { Observation } from '../observation.js';
import { alarmRule } from '../rule.js';

export const graderFailing = alarmRule({
  name: 'guard/grader-failing',
  levels: ['note', 'warn', 'stop'],
  what: 'answers could not be graded',
  remedy:
    'find the first failure in the samples of the run and mend the grader; loopwright grader test runs it on cases of your own',
  needs: '`groups` with `status`, or `failure`',
  limits: {
    warnShare: { value: 0.05, why: 'of the answers of a step: preflight draws the line there too' },
    stopShare: { value: 0.2, why: 'of the answers of a step; the loops set it by maxGraderErrorShare' },
  },
  explains: ['guard/grader-constant', 'guard/dead-batch'],
  look({ now: { samples, failed, facts }, limits }) {
    const { failure } = facts;
    if (LoopwrightError.isInstance(failure) && failure.code === 'grader_failed')
      return { level: 'stop', seen: 'more answers could not be graded than the run goes on with' };
    if (failed === 0) return undefined;
    const share = failed / samples.length;
    const late = samples.filter(({ status }) => status === 'timeout').length;
    return {
      level: share > limits.stopShare ? 'stop' : share > limits.warnShare ? 'warn' : 'note',
      seen: `${failed} of ${samples.length} answers could not be graded (${failed - late} by an error, ${late} by time)`,
    };
  },
});

const window = {
  value: 3,
  why: 'steps in a row: a weak model has a step without any right answer now and then, three in a row hardly',
} as const;

/** How many steps in a row, this one included, were as `test` says. */
function inARow({ steps }: History, test: (step: History['steps'][number]) => boolean): number {
  const last = steps.toReversed().findIndex((step) => !test(step));
  return 1 + (last === -1 ? steps.length : last);
}

/** Whether all rewards are the highest that were ever seen, and others were. */
function isSolved({ rewards_PG }: Observation, { rewards }: History): boolean {
  return rewards !== undefined && rewards.low < rewards.high && rewards_PG.flat().every((each) => each >= rewards.high);
}

export const graderConstant = alarmRule({
  name: 'guard/grader-constant',
  levels: ['note', 'warn'],
  what: 'the grader gives every answer the same reward',
  remedy:
    'judge a right and a wrong answer by hand (loopwright grader test); where the model is never right, train on easier problems or do SFT first; where it always is, end the run',
  needs: '`groups` with `reward`',
  limits: { window, minSamples: { value: 16, why: 'graded answers of a step, of two problems or more' } },
  explains: ['guard/dead-batch'],
  look({ now, past, limits }) {
    const rewards = now.rewards_PG.flat();
    const [value] = rewards;
    const judged = now.rewards_PG.filter((row) => row.length > 0);
    if (judged.length < 2 || rewards.length < limits.minSamples || rewards.some((each) => each !== value))
      return undefined;
    const times = inARow(past, ({ isDead, metrics }) => isDead === true && metrics['reward/mean'] === value);
    const level = times >= limits.window && !isSolved(now, past) ? 'warn' : 'note';
    return { level, seen: `all ${rewards.length} rewards are ${value}${inARowText(times)}` };
  },
});

export const deadBatch = alarmRule({
  name: 'guard/dead-batch',
  levels: ['note', 'warn'],
  what: 'no group of a step has two different rewards, so there is nothing to learn from',
  remedy:
    'choose problems that are solved now and then but not always (loopwright preflight writes them), take more answers to each, or draw others with refillRounds',
  needs: '`groups` with `reward`',
  limits: { window, minGroups: { value: 2, why: 'groups with rewards: one alone is dead by chance' } },
  look({ now, past, limits }) {
    const judged = now.rewards_PG.filter((row) => row.length > 0);
    if (judged.length < limits.minGroups || judged.some((row) => row.some((each) => each !== row[0]))) return undefined;
    const times = inARow(past, ({ isDead }) => isDead === true);
    const level = times >= limits.window && !isSolved(now, past) ? 'warn' : 'note';
    return { level, seen: `all ${judged.length} groups have equal rewards${inARowText(times)}` };
  },
});

function inARowText(times: number): string {
  return times === 1 ? '' : `, in ${times} steps in a row`;
}
