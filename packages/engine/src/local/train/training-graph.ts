/** The training program of a model: log-probabilities, token losses and, for a backward pass, a gradient for each trained array. */
import { basename } from 'node:path';
import {
  add,
  compile,
  concat,
  type Dim,
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
  recompute,
  reshape,
  split,
  transpose,
  type Value,
} from '@loopwright/graph';
import type { TargetModule } from '@loopwright/protocol';
import type { WeightsFile } from '../../formats/weights-file.js';
import type { ModelConfig } from '../models/config.js';
import { parts } from '../models/mask.js';
import { layerRotary } from '../models/rope.js';
import { keepsAll, type SequenceForm, sequenceLength } from '../models/sequence-form.js';
import { hasBias, moduleName, plainLinear, sequenceModel, weightInputs } from '../models/transformer.js';
import { fusedGroups, headWeightName, linearModules, weightSpecs } from '../models/weight-names.js';
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
  /** Where the weights of linear layers lie, if they are to be constants of the program, which the runtime packs; else they are fed. */
  readonly constants?: WeightsFile | undefined;
  readonly form: SequenceForm;
}

export interface TrainingGraph {
  readonly program: LoweredProgram;
  /** Names of the base weights that must be fed; none of those that are constants. */
  readonly weightNames: readonly string[];
  /** Outputs with a gradient, by the name of the trained array. */
  readonly gradientNames: readonly string[];
}

export const adapterInput = (key: string, part: 'A' | 'B') => `${key}.lora_${part}`;
export const gradientOf = (name: string) => `grad ${name}`;
/** Gradient of the looked-up embedding rows [B·S, D]; the caller adds them to their rows, in order. */
export const embeddedRows = 'embedded rows';

/** Keys of the linear layers that read the same array as this one, itself among them. */
function sharingInput(key: string): readonly string[] {
  const dot = key.lastIndexOf('.');
  const members = fusedGroups.find((group) => group.members.includes(key.slice(dot + 1)))?.members;
  return members?.map((member) => `${key.slice(0, dot)}.${member}`) ?? [key];
}

/** The head over as many tokens at a time as all rows have in a block of queries: logits are V numbers a token. */
function inChunks(
  x: Value,
  targets: Value,
  { blocks }: SequenceForm,
  logprobsOf: (x: Value, targets: Value) => Value,
): Value {
  const cut = (y: Value) => parts(reshape(y, [blocks, product(['B', 'Q']), y.shape[1]!]), 0);
  const chosen = cut(targets);
  const chunks = cut(x).map((part, i) => logprobsOf(part, chosen[i]!));
  return reshape(
    concat(
      chunks.map((part) => reshape(part, [1, ...part.shape])),
      0,
    ),
    targets.shape,
  );
}

export function buildTrainingGraph(
  config: ModelConfig,
  { trained, backward, constants, form }: TrainingGraphOptions,
): TrainingGraph {
  const graph = new Graph();
  const shapes = new Map(weightSpecs(config).map(({ name, shape }) => [name, shape]));
  const used = new Set<string>();
  const declare = weightInputs(graph, (name) => shapes.get(name)!);
  const weights = (name: string) => {
    used.add(name);
    return declare(name);
  };
  const factors = new Map<string, Value>();
  /** A weight that is a factor of products. */
  const factor = (name: string): Value => {
    if (constants === undefined) return weights(name);
    const { shape, offset } = constants.tensors.get(name)!;
    const value = factors.get(name) ?? graph.externalConstant(name, { shape, file: basename(constants.path), offset });
    factors.set(name, value);
    return value;
  };
  const S = sequenceLength(form);
  const rows = product(['B', S]);
  const ids = graph.input('ids', 'int64', ['B', S]);
  const positions = graph.input('positions', 'int64', ['B', S]);
  const segments = graph.input('segments', 'int64', ['B', S]);
  const targets = graph.input('targets', 'int64', [rows, 'K']);
  const inverseTemperature = graph.input('inverse_temperature', 'float32', [rows, 1]);
  const loss = lossInputs(graph, rows);
  const rotary = layerRotary(graph, config, positions);

  const adapters = new Map<string, Value>();
  const scale = trained.type === 'lora' ? graph.input('lora_scale', 'float32', []) : undefined;
  const modules =
    trained.type === 'lora' ? new Map(linearModules(config, trained.targetModules).map((m) => [m.key, m])) : new Map();
  const input = (key: string, part: 'A' | 'B', shape: readonly Dim[]) => {
    const name = adapterInput(key, part);
    const value = adapters.get(name) ?? graph.input(name, 'float32', shape);
    adapters.set(name, value);
    return value;
  };
  // Layers that read the same x have their A stacked: one product (and one for each gradient) of more rows is faster than several of few.
  const narrow = new Map<string, Value>();
  const narrowed = (x: Value, key: string): Value => {
    const known = narrow.get(`${x.id} ${key}`);
    if (known !== undefined) return known;
    const together = sharingInput(key).filter((member) => modules.has(member));
    const stacked = concat(
      together.map((member) => input(member, 'A', ['R', modules.get(member)!.inFeatures])),
      0,
    );
    const low = mul(matMul(x, stacked, { transposeB: true }), scale!);
    const lows = together.length === 1 ? [low] : split(low, 1, new Array<Dim>(together.length).fill('R'));
    together.forEach((member, i) => {
      narrow.set(`${x.id} ${member}`, lows[i]!);
    });
    return narrow.get(`${x.id} ${key}`)!;
  };
  const withAdapter = (x: Value, y: Value, key: string): Value => {
    const module = modules.get(key);
    if (module === undefined) return y;
    const low = narrowed(x, key);
    // Written so, the gradient of B is low'·dy, of R rows, and turned at the end; as dy'·low it has as many rows as y is wide, in twice the time.
    return add(y, matMul(low, transpose(input(key, 'B', [module.outFeatures, 'R']), [1, 0])));
  };
  const { embedded, hidden } = sequenceModel(
    config,
    weights,
    (x, layer, module) => {
      const name = moduleName(layer, module);
      const y = plainLinear(x, factor(`${name}.weight`), hasBias(config, module) ? weights(`${name}.bias`) : undefined);
      return withAdapter(x, y, `layers.${layer}.${module}`);
    },
    { ids, positions, segments, rotary, form },
  );

  const scaled = mul(hidden, inverseTemperature);
  const head = factor(headWeightName(config));
  // The frozen head has a shorter way that never keeps the logits; training it, or an adapter on it, needs them.
  const frozenHead = trained.type !== 'full' && !modules.has('lm_head');
  const keepsLess = !keepsAll(form);
  const trainedHead = (x: Value, chosen: Value) => {
    const make = () =>
      gatherElements(logSoftmax(withAdapter(x, matMul(x, head, { transposeB: true }), 'lm_head')), chosen);
    return keepsLess ? recompute(graph, make) : make();
  };
  const logprobsOf = (x: Value, chosen: Value) =>
    frozenHead ? linearLogprob(x, head, chosen) : trainedHead(x, chosen);
  const logprobs = keepsLess ? inChunks(scaled, targets, form, logprobsOf) : logprobsOf(scaled, targets);
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
