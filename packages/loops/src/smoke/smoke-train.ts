/** Steps of the real loop on a task, with rewards that never tie. */
import type { Tokenizer } from '@loopwright/text';
import type { Problem } from '../environments/environment.js';
import type { SampledRollouts } from '../runs/run-samples.js';
import type { ResolvedSettings } from '../tasks/settings.js';
import { isAnswerEnvironment, type Task } from '../tasks/task.js';
import type { Checkpoints } from '../training/checkpoints.js';
import type { Trainer } from '../training/clients.js';
import { runGrpo } from '../training/grpo.js';
import type { GrpoResult, StepOf } from '../training/grpo-options.js';
import { episodesWithoutTies, withoutTies } from './smoke-ties.js';

export interface TrainOptions<P extends Problem> {
  readonly training: Trainer;
  readonly tokenizer: Tokenizer;
  readonly problems: readonly P[];
  readonly settings: ResolvedSettings;
  readonly contextLength: number;
  readonly steps: number;
  readonly seed: number;
  readonly checkpoints: Checkpoints;
  readonly onStep: (step: StepOf<SampledRollouts>) => void;
  readonly signal?: AbortSignal;
}

/** Prompts of a step, and answers to each: enough for advantages, and few enough to be quick. */
const [groupsPerStep, samplesPerGroup] = [4, 4];

export function train<P extends Problem>(
  { environment }: Task<P>,
  { settings, contextLength, signal, ...given }: TrainOptions<P>,
): Promise<GrpoResult> {
  const { maxTokens, temperature, learningRate, maxTurns } = settings;
  const options = {
    ...given,
    ...{ groupsPerStep, samplesPerGroup, maxTokens, temperature, learningRate },
    maxGraderErrorShare: 0,
    onNotice: () => {},
    ...(signal === undefined ? {} : { signal }),
  };
  return isAnswerEnvironment(environment)
    ? runGrpo({ ...options, environment: withoutTies(environment) })
    : runGrpo({ ...options, environment: episodesWithoutTies(environment), maxTurns, maxContext: contextLength });
}
