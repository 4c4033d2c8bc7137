/** The state of AdamW beside saved weights: first and second moments in optimizer.safetensors, the step in trainer_state.json. */
import { join } from 'node:path';
import { complaint, type LoopwrightError } from '@loopwright/protocol';
import { type WriteOptions, writeJsonAtomically } from './atomic-file.js';
import { readJsonObject } from './model-directory.js';
import { firstNonFinite, sameShape, showShape } from './numbers.js';
import { SafetensorsFile, type TensorToWrite, writeSafetensors } from './safetensors.js';

const momentsFile = 'optimizer.safetensors';
const stateFile = 'trainer_state.json';
const formatVersion = 1;

/** Moments of one parameter, of its shape. */
export interface ParameterMoments {
  readonly shape: readonly number[];
  /** Running mean of gradients. */
  readonly expAvg: Float32Array;
  /** Running mean of squared gradients; nowhere negative. */
  readonly expAvgSq: Float32Array;
}

export interface OptimizerState {
  /** Steps taken; 0 before the first. */
  readonly step: number;
  /** By parameter name; the trainer chooses the names and finds the same ones again. */
  readonly moments: ReadonlyMap<string, ParameterMoments>;
}

/**
 * Writes both files into an existing directory.
 *
 * @returns their names
 * @throws `invalid_argument` for data that does not fill its shape, `disk_full`, `cancelled`
 */
export async function writeOptimizerState(
  directory: string,
  { step, moments }: OptimizerState,
  options: WriteOptions = {},
): Promise<readonly string[]> {
  if (!Number.isSafeInteger(step) || step < 0) throw complaint({ field: 'step', expected: 'a count', got: `${step}` });
  const list: TensorToWrite[] = [];
  for (const [name, { shape, expAvg, expAvgSq }] of moments) {
    list.push({ name: `exp_avg.${name}`, shape, data: expAvg });
    list.push({ name: `exp_avg_sq.${name}`, shape, data: expAvgSq });
  }
  // The step is in both files, so that a mix of two saves is noticed.
  await writeSafetensors(join(directory, momentsFile), list, { ...options, metadata: { step: `${step}` } });
  await writeJsonAtomically(
    join(directory, stateFile),
    { format: 'loopwright-trainer-state', format_version: formatVersion, step, parameters: moments.size },
    options,
  );
  return [momentsFile, stateFile];
}

/**
 * Reads both files.
 *
 * @param parameters name and shape of each parameter that must have moments; no others may be there
 * @throws `model_invalid` for missing, cut or damaged files; `checkpoint_mismatch` when they are of another format version, of
 *   two different saves, or of other parameters
 */
export async function readOptimizerState(
  directory: string,
  {
    parameters,
    signal,
  }: { readonly parameters: ReadonlyMap<string, readonly number[]>; readonly signal?: AbortSignal },
): Promise<OptimizerState> {
  const state = await readJsonObject(join(directory, stateFile));
  if (state.format_version !== formatVersion) {
    throw mismatch(`${stateFile}: format_version`, `${formatVersion}`, `${state.format_version}`);
  }
  const { step } = state;
  if (typeof step !== 'number' || !Number.isSafeInteger(step) || step < 0) {
    throw complaint({ code: 'model_invalid', field: `${stateFile}: step`, expected: 'a count', got: typeof step });
  }
  const options = signal === undefined ? {} : { signal };
  await using file = await SafetensorsFile.open(join(directory, momentsFile), options);
  if (file.metadata.step !== `${step}`) {
    throw mismatch(`${momentsFile}: step`, `${step}, as in ${stateFile}`, `${file.metadata.step}`);
  }
  const read = async (kind: 'exp_avg' | 'exp_avg_sq', name: string, shape: readonly number[]) => {
    const info = file.tensors.get(`${kind}.${name}`);
    if (info === undefined) throw mismatch(name, `${kind} of this parameter`, 'none');
    if (!sameShape(info.shape, shape)) throw mismatch(name, `shape ${showShape(shape)}`, showShape(info.shape));
    const values = await file.readFloat32(info.name, options);
    const bad = kind === 'exp_avg' ? firstNonFinite(values) : firstNotASquare(values);
    if (bad < 0) return values;
    throw complaint({
      code: 'model_invalid',
      field: `${momentsFile}: ${info.name}`,
      expected: kind === 'exp_avg' ? 'finite values' : 'finite values of at least 0',
      got: `${values[bad]} at position ${bad}`,
    });
  };
  const moments = new Map<string, ParameterMoments>();
  for (const [name, shape] of parameters) {
    const expAvg = await read('exp_avg', name, shape);
    moments.set(name, { shape, expAvg, expAvgSq: await read('exp_avg_sq', name, shape) });
  }
  if (file.tensors.size !== 2 * parameters.size) {
    throw mismatch(momentsFile, `moments of ${parameters.size} parameters`, `${file.tensors.size / 2}`);
  }
  return { step, moments };
}

function firstNotASquare(values: Float32Array): number {
  return values.findIndex((value) => !(value >= 0 && value < Number.POSITIVE_INFINITY));
}

function mismatch(field: string, expected: string, got: string): LoopwrightError {
  return complaint({
    code: 'checkpoint_mismatch',
    field,
    expected,
    got,
    remedy: 'load a version saved by a session of the same kind, or load without the optimizer',
  });
}
