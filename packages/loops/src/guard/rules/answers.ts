/** Answers as a whole: cut off, not to be read. */
import { counted } from '../../counted.js';
import { alarmRule } from '../rule.js';

const minSamples = {
  value: 16,
  why: 'answers of a step: with fewer, chance makes all of them alike now and then',
} as const;

export const allTruncated = alarmRule({
  name: 'guard/all-truncated',
  levels: ['note', 'warn'],
  what: 'every answer of a step was cut off at maxTokens',
  remedy: 'raise maxTokens, tell the model to be brief, or give the environment a `stop` at which an answer ends',
  needs: '`groups` with `stopReason`',
  limits: { minSamples },
  explains: ['guard/all-unparsed', 'guard/grader-constant', 'guard/dead-batch', 'guard/near-identical-samples'],
  look({ now: { samples, rewards_PG }, limits }) {
    if (samples.length < limits.minSamples || samples.some(({ stopReason }) => stopReason !== 'length'))
      return undefined;
    const longest = Math.max(...samples.map(({ tokens }) => tokens.length));
    // A task of short answers may mean them to end so: then its grader tells them apart.
    const isLearnable = rewards_PG.some((row) => row.some((reward) => reward !== row[0]));
    return {
      level: isLearnable ? 'note' : 'warn',
      seen: `all ${samples.length} answers were cut off, the longest after ${counted(longest, 'token')}${isLearnable ? '; their rewards differ all the same' : ''}`,
    };
  },
});

export const allUnparsed = alarmRule({
  name: 'guard/all-unparsed',
  levels: ['warn'],
  what: 'the grader could read no answer of a step',
  remedy:
    'read a few samples (loopwright samples); show the format in the prompt, do SFT on it first, or mend the pattern that the grader looks for (loopwright grader test)',
  needs: '`groups` with `status`',
  limits: { minSamples },
  explains: ['guard/grader-constant', 'guard/dead-batch'],
  look({ now: { samples }, limits }) {
    if (samples.length < limits.minSamples || samples.some(({ status }) => status !== 'unparsed')) return undefined;
    return { level: 'warn', seen: `none of ${samples.length} answers could be read` };
  },
});
