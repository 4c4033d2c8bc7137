/** The part `checkpoint and restore`: another session goes on from the saved place, and comes to the same, step by step and bit by bit. */
import type { ServiceClient } from '@loopwright/client';
import type { Problem } from '../environments/environment.js';
import type { SampledRollouts } from '../runs/run-samples.js';
import type { Task } from '../tasks/task.js';
import type { StepOf } from '../training/grpo-options.js';
import { isSameMark, markOf } from './smoke-probe.js';
import type { SmokeSteps, SmokeStepsOptions } from './smoke-steps.js';
import { train } from './smoke-train.js';
import { SmokeFailure } from './smoke-words.js';

export interface SmokeCheckpointOptions<P extends Problem> extends Omit<SmokeStepsOptions<P>, 'training'> {
  readonly service: Pick<ServiceClient, 'createTrainingClientFromStateWithOptimizer'>;
  readonly done: SmokeSteps;
}

const stateful =
  'keep nothing between calls in grader or environment, and take what is random from the `random` that is passed in';

export async function smokeCheckpoint<P extends Problem>(
  task: Task<P>,
  { service, done, probes, onProgress, ...options }: SmokeCheckpointOptions<P>,
): Promise<string> {
  const { saved, saveError } = done;
  if (saved === undefined)
    throw new SmokeFailure(
      'the state could not be saved half-way',
      'see the error; loopwright doctor looks at disk and data directory',
      saveError,
    );
  const { position, modelPackageArn } = saved;
  await using training = await service.createTrainingClientFromStateWithOptimizer({ modelPackageArn });
  const mark = async (): Promise<readonly number[]> => markOf(await training.saveWeightsAndGetSamplingClient(), probes);
  if (!isSameMark(saved.mark, await mark()))
    throw new SmokeFailure(
      `the weights that were restored differ from those that were saved after step ${position.step}`,
      'run loopwright replay on the data directory, and report it: this is a fault of Loopwright',
    );
  const again: StepOf<SampledRollouts>[] = [];
  await train(task, {
    ...options,
    training,
    checkpoints: { every: options.steps, resumed: position, save: async () => {} },
    onStep: (step) => onProgress(position.step + again.push(step), options.steps),
  });
  const first = done.steps.slice(position.step);
  const different = first.findIndex(
    (step, i) => JSON.stringify(rewardsOf(step)) !== JSON.stringify(rewardsOf(again[i])),
  );
  if (different >= 0)
    throw new SmokeFailure(
      `step ${position.step + different + 1} came to other rewards when the run went on from its checkpoint`,
      stateful,
    );
  if (!isSameMark(done.mark, await mark()))
    throw new SmokeFailure('the same steps from the checkpoint came to other weights', stateful);
  return `saved after step ${position.step}, restored, and gone on to the same weights, bit for bit`;
}

function rewardsOf(step: StepOf<SampledRollouts> | undefined): unknown {
  return step?.groups.map(({ problem, rollouts }) => [problem.id, rollouts.map(({ reward }) => reward)]);
}
