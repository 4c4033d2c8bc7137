/** GRPO's task where a problem has one answer. */
import type { Tokenizer } from '@loopwright/text';
import { CallTimes } from '../environments/call-times.js';
import type { Environment, Problem } from '../environments/environment.js';
import { type Evaluation, evaluate } from './evaluate.js';
import { scoreGroups, teaches, trainingData, withPenalties } from './grpo-data.js';
import { gradingWarning, rolloutMetrics } from './grpo-metrics.js';
import type { Resolved } from './grpo-options.js';
import type { GrpoTask } from './grpo-task.js';
import { checkGrading, gradeGroups, type RolloutGroup, sampleGroups } from './rollouts.js';

export interface AnswerTaskOptions<P extends Problem> {
  readonly environment: Environment<P>;
  readonly tokenizer: Tokenizer;
  readonly run: Resolved;
}

export function answerTask<P extends Problem>({
  environment,
  tokenizer,
  run,
}: AnswerTaskOptions<P>): GrpoTask<P, RolloutGroup<P>, Evaluation<P>['answers'][number]> {
  const times = new CallTimes(run.timeoutMs);
  const { timeoutMs, samplesPerGroup: numSamples, maxTokens, temperature, maxGraderErrorShare, onGraderError } = run;
  return {
    draw: (random) => environment.draw(random),
    async group(problem, { sampler, scope, seeds, timed, reference }) {
      const sampling = { numSamples, maxTokens, temperature, seedOf: () => seeds.answers };
      const sampled = await timed('sample', () =>
        sampleGroups({ sampler, environment, tokenizer, problems: [problem], scope, ...sampling }),
      );
      if (reference !== undefined) {
        const scored = await timed('reference', () => scoreGroups(sampled, reference.scorer, scope));
        for (const [sample, logprobs] of scored) reference.scores.set(sample, logprobs);
      }
      const graded = await timed('grade', () =>
        gradeGroups({ groups: sampled, environment, tokenizer, onGraderError, times, scope }),
      );
      return withPenalties(graded, run)[0]!; // of one problem
    },
    check: (groups) => checkGrading(groups, maxGraderErrorShare),
    teaches: (group) => teaches(group, run),
    data: (groups, reference) => trainingData(groups, { ...run, reference }),
    metrics: rolloutMetrics,
    evaluate: ({ sampler, ...work }) =>
      evaluate(sampler, { environment, tokenizer, maxTokens, maxGraderErrorShare, timeoutMs, ...work }),
    warnings: (groups) => {
      const warning = gradingWarning(groups);
      return warning === undefined ? [] : [warning];
    },
  };
}
