/** The training program of a model: log-probabilities, token losses and, for a backward pass, a gradient for each trained array. */
import {
  add,
  compile,
  expandLike,
  Graph,
  gatherElements,
  gradients,
  type LoweredProgram,
  linearLogprob,
  logSoftmax,
  matMul,
  mul,
  product,
  transpose,
  type Value,
} from '@loopwright/graph';
import type { TargetModule } from '@loopwright/protocol';
import type { ModelConfig } from '../models/config.js';
import { layerRotary } from '../models/rope.js';
import {
  hasBias,
  headWeightName,
  moduleName,
  plainLinear,
  sequenceLength,
  sequenceModel,
  weightInputs,
} from '../models/transformer.js';
import { linearModules, weightSpecs } from '../models/weight-names.js';
import { lossInputs, tokenLosses } from './loss.js';

/** Which arrays the program trains. */
export type Trained =
  | { readonly type: 'lora'; readonly targetModules: readonly TargetModule[] }
  | { readonly type: 'full' }
  | { readonly type: 'none' };

export interface TrainingGraphOptions {
  readonly trained: Trained;
  /** With gradients, or the forward pass alone. */
  readonly backward: boolean;
}

export interface TrainingGraph {
  readonly program: LoweredProgram;
  /** Names of the base weights that must be fed. */
  readonly weightNames: readonly string[];
  /** Outputs with a gradient, by the name of the trained array. */
  readonly gradientNames: readonly string[];
}

export const adapterInput = (key: string, part: 'A' | 'B') => `${key}.lora_${part}`;
export const gradientOf = (name: string) => `grad ${name}`;
/** Gradient of the looked-up embedding rows [B·S, D]; the caller adds them to their rows, in order. */
export const embeddedRows = 'embedded rows';

export function buildTrainingGraph(config: ModelConfig, { trained, backward }: TrainingGraphOptions): TrainingGraph {
  const graph = new Graph();
  const shapes = new Map(weightSpecs(config).map(({ name, shape }) => [name, shape]));
  const used = new Set<string>();
  const declare = weightInputs(graph, (name) => shapes.get(name)!);
  const weights = (name: string) => {
    used.add(name);
    return declare(name);
  };
  const rows = product(['B', sequenceLength]);
  const ids = graph.input('ids', 'int64', ['B', sequenceLength]);
  const positions = graph.input('positions', 'int64', ['B', sequenceLength]);
  const mask = graph.input('mask', 'float32', ['B', sequenceLength, sequenceLength]);
  const targets = graph.input('targets', 'int64', [rows, 'K']);
  const inverseTemperature = graph.input('inverse_temperature', 'float32', [rows, 1]);
  const loss = lossInputs(graph, rows);
  const rotary = layerRotary(graph, config, positions);

  const adapters = new Map<string, Value>();
  const scale = trained.type === 'lora' ? graph.input('lora_scale', 'float32', []) : undefined;
  const modules =
    trained.type === 'lora' ? new Map(linearModules(config, trained.targetModules).map((m) => [m.key, m])) : new Map();
  const withAdapter = (x: Value, y: Value, key: string): Value => {
    const module = modules.get(key);
    if (module === undefined || scale === undefined) return y;
    const A = graph.input(adapterInput(key, 'A'), 'float32', ['R', module.inFeatures]);
    const B = graph.input(adapterInput(key, 'B'), 'float32', [module.outFeatures, 'R']);
    adapters.set(adapterInput(key, 'A'), A).set(adapterInput(key, 'B'), B);
    const low = mul(matMul(x, A, { transposeB: true }), scale);
    // Written so, the gradient of B is low'·dy, of R rows, and turned at the end; as dy'·low it has as many rows as y is wide, in twice the time.
    return add(y, matMul(low, transpose(B, [1, 0])));
  };
  const { embedded, hidden } = sequenceModel(
    config,
    weights,
    (x, layer, module) => {
      const name = moduleName(layer, module);
      const y = plainLinear(
        x,
        weights(`${name}.weight`),
        hasBias(config, module) ? weights(`${name}.bias`) : undefined,
      );
      return withAdapter(x, y, `layers.${layer}.${module}`);
    },
    { ids, positions, rotary, mask },
  );

  const scaled = mul(hidden, inverseTemperature);
  const head = weights(headWeightName(config));
  // The frozen head has a shorter way that never keeps the logits; training it, or an adapter on it, needs them.
  const frozenHead = trained.type !== 'full' && !modules.has('lm_head');
  const logprobs = frozenHead
    ? linearLogprob(scaled, head, targets)
    : gatherElements(logSoftmax(withAdapter(scaled, matMul(scaled, head, { transposeB: true }), 'lm_head')), targets);
  const losses = tokenLosses(logprobs, loss);

  const outputs: Record<string, Value> = { logprobs, losses };
  if (backward && trained.type !== 'none') {
    const wrt = new Map<string, Value>(adapters);
    if (trained.type === 'full') {
      for (const name of shapes.keys()) if (name !== 'model.embed_tokens.weight') wrt.set(name, weights(name));
      // The table is trained through the rows that were looked up and, where it is also the head, through the head.
      wrt.set(embeddedRows, embedded);
      if (config.tiedEmbeddings) wrt.set('model.embed_tokens.weight', head);
    }
    const names = [...wrt.keys()];
    const seeds = [{ value: losses, grad: expandLike(graph.scalar(1), losses) }];
    const grads = gradients(seeds, [...wrt.values()]);
    names.forEach((name, i) => {
      outputs[gradientOf(name)] = grads[i]!;
    });
  }
  return {
    program: compile(graph, outputs),
    weightNames: [...used],
    gradientNames: Object.keys(outputs)
      .filter((name) => name.startsWith('grad '))
      .map((name) => name.slice('grad '.length)),
  };
}
