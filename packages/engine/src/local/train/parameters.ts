/** The arrays that a session trains, by the names under which the training program takes them. */
import type { SessionSpec } from '@loopwright/protocol';
import { initialA } from '../adapters/initialize.js';
import type { BaseModel } from '../base-model.js';
import { linearModules } from '../models/weight-names.js';
import { adapterInput, type Trained } from './training-graph.js';

export interface Parameter {
  readonly name: string;
  readonly shape: readonly number[];
  readonly values: Float32Array;
  /** B of an adapter, which LoRA+ steps at its own rate. */
  readonly isLoraB: boolean;
}

export function trainedBy({ training }: SessionSpec): Trained {
  return training.type === 'lora' ? { type: 'lora', targetModules: training.targetModules } : { type: 'full' };
}

export function initialParameters(base: BaseModel, { training, seed }: SessionSpec): Map<string, Parameter> {
  const parameters = new Map<string, Parameter>();
  const put = (parameter: Parameter) => parameters.set(parameter.name, parameter);
  if (training.type === 'full') {
    for (const [name, shape] of base.shapes)
      put({ name, shape, values: base.weights.get(name)!.slice(), isLoraB: false });
    return parameters;
  }
  const { rank } = training;
  for (const { key, inFeatures, outFeatures } of linearModules(base.config, training.targetModules)) {
    put({
      name: adapterInput(key, 'A'),
      shape: [rank, inFeatures],
      values: initialA({ seed, key, rank, inFeatures }),
      isLoraB: false,
    });
    put({
      name: adapterInput(key, 'B'),
      shape: [outFeatures, rank],
      values: new Float32Array(outFeatures * rank),
      isLoraB: true,
    });
  }
  return parameters;
}
