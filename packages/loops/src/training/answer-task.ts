/** GRPO's task where a problem has one answer. */
import type { Tokenizer } from '@loopwright/text';
import type { Environment, Problem } from '../environments/environment.js';
import { scoreGroups, teaches, trainingData, withPenalties } from './grpo-data.js';
import { gradingWarning, rolloutMetrics } from './grpo-metrics.js';
import type { Resolved } from './grpo-options.js';
import type { GrpoTask } from './grpo-task.js';
import { gradeGroups, type RolloutGroup, sampleGroups } from './rollouts.js';

export interface AnswerTaskOptions<P extends Problem> {
  readonly environment: Environment<P>;
  readonly tokenizer: Tokenizer;
  readonly run: Resolved;
}

export function answerTask<P extends Problem>({
  environment,
  tokenizer,
  run,
}: AnswerTaskOptions<P>): GrpoTask<P, RolloutGroup<P>> {
  const { samplesPerGroup: numSamples, maxTokens, temperature, maxGraderErrorShare, onGraderError } = run;
  return {
    draw: (random) => environment.draw(random),
    async round(problems, { sampler, scope, seedOf, earlier, lap, reference }) {
      const sampling = { numSamples, maxTokens, temperature, seedOf };
      const sampled = await sampleGroups({ sampler, environment, tokenizer, problems, scope, ...sampling });
      lap('time/sample_ms');
      if (reference !== undefined) {
        for (const [sample, logprobs] of await scoreGroups(sampled, reference.scorer, scope))
          reference.scores.set(sample, logprobs);
        lap('time/reference_ms');
      }
      const limits = { maxGraderErrorShare, onGraderError, earlier };
      const graded = withPenalties(
        await gradeGroups({ groups: sampled, environment, tokenizer, ...limits, scope }),
        run,
      );
      lap('time/grade_ms');
      return graded;
    },
    teaches: (group) => teaches(group, run),
    data: (groups, reference) => trainingData(groups, { ...run, reference }),
    metrics: rolloutMetrics,
    warnings: (groups) => {
      const warning = gradingWarning(groups);
      return warning === undefined ? [] : [warning];
    },
  };
}
