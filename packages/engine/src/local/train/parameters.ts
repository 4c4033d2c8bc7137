/** The arrays that a session trains, by the names under which the training program takes them. */
import { complaint, type LoopwrightError, type SessionSpec, type TrainingSpec } from '@loopwright/protocol';
import { blockArrays } from '../../formats/blocks.js';
import { elementCount } from '../../formats/numbers.js';
import { initialA } from '../adapters/initialize.js';
import type { BaseModel } from '../base-model.js';
import { linearModules } from '../models/weight-names.js';
import type { SessionState } from './session-state.js';
import { adapterInput, type Trained } from './training-graph.js';

export interface ParameterSpec {
  readonly name: string;
  readonly shape: readonly number[];
  /** B of an adapter, which LoRA+ steps at its own rate. */
  readonly isLoraB: boolean;
}

export interface Parameter extends ParameterSpec {
  readonly values: Float32Array;
}

export function trainedBy({ training }: SessionSpec): Trained {
  return training.type === 'lora' ? { type: 'lora', targetModules: training.targetModules } : { type: 'full' };
}

interface NewParameter extends ParameterSpec {
  /** Puts what it starts from into zeros. */
  readonly initial: (seed: number, values: Float32Array) => void;
}

/** In the order in which a step goes through them. */
function newParameters(base: BaseModel, training: TrainingSpec): NewParameter[] {
  if (training.type === 'full') {
    return [...base.shapes].map(([name, shape]) => {
      return { name, shape, isLoraB: false, initial: (_, values) => values.set(base.weights.get(name)!) };
    });
  }
  const { rank } = training;
  return linearModules(base.config, training.targetModules).flatMap(({ key, inFeatures, outFeatures }) => [
    {
      name: adapterInput(key, 'A'),
      shape: [rank, inFeatures],
      isLoraB: false,
      initial: (seed, values) => values.set(initialA({ seed, key, rank, inFeatures })),
    },
    {
      name: adapterInput(key, 'B'),
      shape: [outFeatures, rank],
      isLoraB: true,
      initial: () => undefined,
    },
  ]);
}

export function initialParameters(base: BaseModel, { training, seed }: SessionSpec): Map<string, Parameter> {
  const specs = newParameters(base, training);
  const arrays = blockArrays(specs.map(({ shape }) => elementCount(shape)));
  const values = new Map(specs.map(({ name }, i) => [name, arrays[i]!]));
  for (const { name, initial } of specs) initial(seed, values.get(name)!);
  return parametersWith(specs, ({ name }) => values.get(name)!);
}

/**
 * The parameters of a session with the arrays of a state.
 *
 * @throws `checkpoint_mismatch` when arrays of the state are missing, of another length, or of no parameter
 */
export function parametersFrom(
  base: BaseModel,
  training: TrainingSpec,
  { values, moments, gradient }: Pick<SessionState, 'values' | 'moments' | 'gradient'>,
): Map<string, Parameter> {
  const parameters = parametersWith(
    newParameters(base, training),
    ({ name }) => values.get(name) ?? new Float32Array(),
  );
  const fits = (name: string, data: Float32Array) => data.length === elementCount(parameters.get(name)?.shape ?? [0]);
  for (const { name, values } of parameters.values()) if (!fits(name, values)) throw misfit(name);
  for (const name of values.keys()) if (!parameters.has(name)) throw misfit(name);
  if (moments.size !== 0 && moments.size !== parameters.size) throw misfit('moments');
  for (const [name, { m, v }] of moments) if (!fits(name, m) || !fits(name, v)) throw misfit(name);
  for (const [name, data] of gradient ?? []) if (!fits(name, data)) throw misfit(name);
  return parameters;
}

function misfit(name: string): LoopwrightError {
  return complaint({
    code: 'checkpoint_mismatch',
    field: name.slice(0, 120),
    expected: 'the arrays that the session trains, each of its size',
    got: 'one that is missing, of another size, or of another session',
  });
}

function parametersWith(
  specs: readonly NewParameter[],
  valuesFor: (spec: NewParameter) => Float32Array,
): Map<string, Parameter> {
  return new Map(
    specs.map((spec) => {
      const { name, shape, isLoraB } = spec;
      return [name, { name, shape, isLoraB, values: valuesFor(spec) }];
    }),
  );
}
