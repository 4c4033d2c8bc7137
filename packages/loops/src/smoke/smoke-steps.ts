/** The part `step`: the loop takes its steps, numbers stay finite, what was sampled is what is trained, and weights change. */
import type { TrainingClient } from '@loopwright/client';
import type { Problem } from '../environments/environment.js';
import type { SampledRollouts } from '../runs/run-samples.js';
import type { Task } from '../tasks/task.js';
import type { LoopPosition } from '../training/checkpoints.js';
import type { StepOf } from '../training/grpo-options.js';
import { isSameMark, markOf } from './smoke-probe.js';
import { type TrainOptions, train } from './smoke-train.js';
import { SmokeFailure } from './smoke-words.js';

export interface SmokeStepsOptions<P extends Problem>
  extends Omit<TrainOptions<P>, 'training' | 'checkpoints' | 'onStep'> {
  readonly training: TrainingClient;
  readonly probes: readonly (readonly number[])[];
  readonly onProgress: (steps: number, of: number) => void;
}

/** A saved place, and what the weights of it say. */
export interface SavedPlace {
  readonly position: LoopPosition;
  readonly modelPackageArn: string;
  readonly mark: readonly number[];
}

export interface SmokeSteps {
  readonly steps: readonly StepOf<SampledRollouts>[];
  /** Half-way. */
  readonly saved: SavedPlace | undefined;
  /** Why it could not be saved. */
  readonly saveError: unknown;
  /** Of the last weights. */
  readonly mark: readonly number[];
  readonly seen: string;
}

/** Ratios of the policy that is trained to the one that sampled, at equal weights: 1 but for rounding. */
const ratioTolerance = 1e-3;

export async function smokeSteps<P extends Problem>(
  task: Task<P>,
  { training, probes, onProgress, ...options }: SmokeStepsOptions<P>,
): Promise<SmokeSteps> {
  const mark = async (): Promise<readonly number[]> => markOf(await training.saveWeightsAndGetSamplingClient(), probes);
  const before = await mark();
  const steps: StepOf<SampledRollouts>[] = [];
  const half = Math.ceil(options.steps / 2);
  let saved: SavedPlace | undefined;
  let saveError: unknown;
  const save = async (position: LoopPosition): Promise<void> => {
    if (position.step !== half) return;
    try {
      // Through text, as another process would have it.
      const read: LoopPosition = JSON.parse(JSON.stringify(position));
      const { modelPackageArn } = await training.saveState({ description: 'smoke test' });
      saved = { position: read, modelPackageArn, mark: await mark() };
    } catch (error) {
      saveError = error; // a matter of the next part
    }
  };
  const { skippedSteps, metrics } = await train(task, {
    ...options,
    training,
    checkpoints: { every: half, save },
    onStep: (step) => onProgress(steps.push(step), options.steps),
  });
  const trained = steps.length - skippedSteps;
  if (trained === 0)
    throw new SmokeFailure(
      `all ${steps.length} steps were skipped: every group had the same answer throughout`,
      'sample at a temperature near 1, and see that prompts are encoded as the model knows them',
    );
  const names = metrics.flatMap((step) => Object.entries(step).filter(([, value]) => !Number.isFinite(value)));
  const [notFinite] = names;
  if (notFinite !== undefined)
    throw new SmokeFailure(`${notFinite[0]} is ${notFinite[1]}`, 'keep rewards and scores finite and of a size near 1');
  const ratios = metrics
    .flatMap((step) => [step['ratio/min'], step['ratio/max']])
    .filter((ratio) => ratio !== undefined);
  const furthest = Math.max(0, ...ratios.map((ratio) => Math.abs(ratio - 1)));
  if (furthest > ratioTolerance)
    throw new SmokeFailure(
      `the policy that is trained differs from the one that sampled by up to ${furthest.toPrecision(2)} in its ratio`,
      'train exactly the tokens that were sampled, at temperature 1 (loopwright guide: guard/ratio)',
    );
  const after = await mark();
  if (isSameMark(before, after))
    throw new SmokeFailure(
      `after ${trained} optimizer steps the weights say the same as before`,
      'raise settings.learningRate',
    );
  const seen = `${trained} of ${steps.length} steps trained, ratio within ${furthest.toExponential(0)} of 1, weights changed`;
  return { steps, saved, saveError, mark: after, seen };
}
