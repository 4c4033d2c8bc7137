/** Whole prompts through the model: their keys and values, or the hidden states that are scored. Base weights and adapter are inputs, shared with training. */
import { add, compile, Graph, type LoweredProgram, matMul, type Value } from '@loopwright/graph';
import { defaultTargetModules } from '@loopwright/protocol';
import type { ModelConfig } from '../models/config.js';
import { layerRotary } from '../models/rope.js';
import { keptForm, sequenceLength } from '../models/sequence-form.js';
import { hasBias, moduleName, plainLinear, sequenceModel, weightInputs } from '../models/transformer.js';
import { linearModules, weightSpecs } from '../models/weight-names.js';
import { adapterInput } from '../train/training-graph.js';

export interface SequenceGraph {
  readonly program: LoweredProgram;
  readonly weightNames: readonly string[];
}

export const keysOutput = (layer: number) => `keys.${layer}`;
export const valuesOutput = (layer: number) => `values.${layer}`;

export interface SequenceKind {
  readonly type: 'prefill' | 'hidden';
  readonly adapted: boolean;
}

/**
 * Inputs: `ids`, `positions` int64 [B,S] (S in whole blocks of queries), weights by name and, where `adapted`, the adapter (B already scaled).
 * Outputs: keys and values [B,K,S,d] by layer for `prefill`; `hidden` [B·S,D] after the last norm for `hidden`.
 */
export function buildSequenceGraph(config: ModelConfig, kind: SequenceKind): SequenceGraph {
  const graph = new Graph();
  const shapes = new Map(weightSpecs(config).map(({ name, shape }) => [name, shape]));
  const used = new Set<string>();
  const declare = weightInputs(graph, (name) => shapes.get(name)!);
  const weights = (name: string) => {
    used.add(name);
    return declare(name);
  };
  const S = sequenceLength(keptForm);
  const ids = graph.input('ids', 'int64', ['B', S]);
  const positions = graph.input('positions', 'int64', ['B', S]);
  const rotary = layerRotary(graph, config, positions);
  const features = new Map(linearModules(config, defaultTargetModules).map((m) => [m.key, m]));
  const withAdapter = (x: Value, y: Value, key: string): Value => {
    const { inFeatures, outFeatures } = features.get(key)!;
    const A = graph.input(adapterInput(key, 'A'), 'float32', ['R', inFeatures]);
    const B = graph.input(adapterInput(key, 'B'), 'float32', [outFeatures, 'R']);
    return add(y, matMul(matMul(x, A, { transposeB: true }), B, { transposeB: true }));
  };
  const { hidden, caches } = sequenceModel(
    config,
    weights,
    (x, layer, module) => {
      const name = moduleName(layer, module);
      const y = plainLinear(
        x,
        weights(`${name}.weight`),
        hasBias(config, module) ? weights(`${name}.bias`) : undefined,
      );
      return kind.adapted ? withAdapter(x, y, `layers.${layer}.${module}`) : y;
    },
    { ids, positions, rotary, form: keptForm },
  );
  const outputs: Record<string, Value> = {};
  if (kind.type === 'prefill') {
    caches.forEach(({ keys, values }, layer) => {
      outputs[keysOutput(layer)] = keys;
      outputs[valuesOutput(layer)] = values;
    });
  } else outputs.hidden = hidden;
  return { program: compile(graph, outputs), weightNames: [...used] };
}
