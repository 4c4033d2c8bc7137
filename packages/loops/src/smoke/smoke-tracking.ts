/** The part `tracking`: what the steps came to is written to a run folder, and read back whole. */
import type { Tokenizer } from '@loopwright/text';
import { counted } from '../counted.js';
import type { Problem } from '../environments/environment.js';
import { findDamage } from '../runs/damage.js';
import { openRun } from '../runs/open-run.js';
import { readRun, readSamples } from '../runs/read-run.js';
import type { SampledRollouts } from '../runs/run-samples.js';
import { metricsName } from '../tracking/jsonl-tracker.js';
import type { StepOf } from '../training/grpo-options.js';
import { SmokeFailure } from './smoke-words.js';

export interface SmokeTrackingOptions<P extends Problem> {
  /** Where the run folder goes. */
  readonly folder: string;
  readonly config: object;
  readonly seed: number;
  readonly problems: readonly P[];
  readonly heldOut: readonly P[] | undefined;
  readonly tokenizer: Tokenizer;
  readonly steps: readonly StepOf<SampledRollouts>[];
}

const plain = 'give problems and grades plain values, of the types that are declared: texts, finite numbers, no cycles';

export async function smokeTracking<P extends Problem>({
  folder,
  config,
  seed,
  problems,
  heldOut,
  tokenizer,
  steps,
}: SmokeTrackingOptions<P>): Promise<string> {
  const data = { train: problems, ...(heldOut === undefined ? {} : { heldOut }) };
  // What it warns of is the failure of this part.
  await using run = await openRun({ folder, config, seeds: { seed }, data, tokenizer, onWarning: () => {} });
  for (const step of steps) await run.onStep(step);
  await run.finish();
  const stored = await readRun(run.folder);
  const kept = stored.steps.filter(({ type }) => type.startsWith('step-')).length;
  if (
    stored.state !== 'done' ||
    kept !== steps.length ||
    (await findDamage(stored)).some(({ file }) => file === metricsName)
  )
    throw new SmokeFailure(`${kept} of ${steps.length} steps could be read back`, plain);
  let read = 0;
  for await (const _sample of readSamples(run.folder)) read += 1;
  const given = steps.flatMap(({ groups }) => groups.flatMap(({ rollouts }) => rollouts)).length;
  if (read !== given) throw new SmokeFailure(`${read} of ${given} samples could be read back`, plain);
  if (run.warnings.length > 0) throw new SmokeFailure(run.warnings.join('; '), plain);
  return `${counted(kept, 'step')} and ${counted(read, 'sample')} written to a run folder and read back`;
}
