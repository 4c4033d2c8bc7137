/** Saving a session's weights and optimizer state as files that other tools read, and loading them back. */
import path from 'node:path';
import { complaint, type TrainingSpec } from '@loopwright/protocol';
import type { SavedFiles } from '../engine.js';
import { type AdapterWeights, readAdapter, writeAdapter } from '../formats/adapter.js';
import { mergeAdapter, writeFullModel, writeModelDirectory } from '../formats/merged-model.js';
import { ModelDirectory } from '../formats/model-directory.js';
import { openModel } from '../formats/open-model.js';
import { readOptimizerState, writeOptimizerState } from '../formats/optimizer-state.js';
import { writeSamplerPath } from '../formats/sampler-path.js';
import type { BaseModel } from './base-model.js';
import { checkpointKind } from './checkpoint-kind.js';
import { linearModules } from './models/weight-names.js';
import { adapterInput } from './train/training-graph.js';
import type { TrainingSession } from './train/training-session.js';

/** A copy of the session's adapter as it is now; undefined for full training. */
export function sessionAdapter({ spec, parameters }: TrainingSession, base: BaseModel): AdapterWeights | undefined {
  const { training } = spec;
  if (training.type === 'full') return undefined;
  const tensors = new Map(
    linearModules(base.config, training.targetModules).map(({ key, inFeatures, outFeatures }) => {
      const [A, B] = [
        parameters.get(adapterInput(key, 'A'))!.values.slice(),
        parameters.get(adapterInput(key, 'B'))!.values.slice(),
      ];
      return [key, { A, B, inFeatures, outFeatures }] as const;
    }),
  );
  const { rank, alpha } = training;
  return { rank, alpha, scale: alpha / rank, targetModules: training.targetModules, tensors };
}

export interface SaveOptions {
  readonly directory: string;
  readonly merge: boolean;
  readonly optimizer: boolean;
  readonly signal?: AbortSignal;
}

export async function saveSession(
  session: TrainingSession,
  base: BaseModel,
  { directory, merge, optimizer, signal }: SaveOptions,
): Promise<SavedFiles> {
  const options = signal === undefined ? {} : { signal };
  const files: string[] = [];
  const adapter = sessionAdapter(session, base);
  if (adapter !== undefined) {
    files.push(...(await writeSamplerPath(directory, session.plan.samplerPath, options))); // before the config, which tells that all is there
    files.push(...(await writeAdapter(directory, adapter, { baseModel: base.card.id, ...options })));
  }
  if (adapter === undefined || merge) {
    await using source = await openModel(base.card.directory, options);
    if (adapter === undefined) {
      const weights = new Map([...session.parameters.values()].map(({ name, values }) => [name, values]));
      files.push(...(await writeFullModel(directory, { base: source, weights }, options)));
    } else {
      const model = mergeAdapter(source, adapter);
      const merged = await writeModelDirectory(path.join(directory, 'merged'), model, options);
      files.push(...merged.map((name) => `merged/${name}`));
    }
  }
  if (optimizer) {
    const moments = new Map(
      [...session.parameters.values()].map(({ name, shape, values }) => {
        const found = session.moments.get(name);
        const zeros = () => new Float32Array(values.length);
        return [name, { shape, expAvg: found?.m ?? zeros(), expAvgSq: found?.v ?? zeros() }] as const;
      }),
    );
    files.push(...(await writeOptimizerState(directory, { step: session.step, moments }, options)));
  }
  return { files };
}

interface LoadOptions {
  readonly directory: string;
  readonly loadOptimizer: boolean;
  readonly signal?: AbortSignal;
}

/** Reads everything before it changes anything: a load that fails leaves the session as it was. Pending gradients are dropped. */
export async function loadSession(
  session: TrainingSession,
  base: BaseModel,
  { directory, loadOptimizer, signal }: LoadOptions,
): Promise<void> {
  const options = signal === undefined ? {} : { signal };
  const kind = await checkpointKind(directory);
  if ((kind === 'adapter') !== (session.spec.training.type === 'lora')) {
    throw complaint({
      code: 'checkpoint_mismatch',
      field: 'modelPackageArn',
      expected: session.spec.training.type === 'lora' ? 'a saved adapter' : 'a saved whole model',
      got: kind === 'adapter' ? 'an adapter' : 'a whole model',
      remedy: 'load it into a session of the same training type',
    });
  }
  const { values, shapes, training } =
    kind === 'adapter'
      ? await readAdapterValues(session, base, { directory, signal })
      : await readModelValues(base, { directory, signal });
  const state = loadOptimizer ? await readOptimizerState(directory, { parameters: shapes, ...options }) : undefined;
  signal?.throwIfAborted();
  session.become({
    training,
    step: state?.step ?? 0,
    pendingPasses: 0,
    hasTrained: session.hasTrained,
    values,
    moments: new Map(
      [...(state?.moments ?? [])].map(([name, { expAvg, expAvgSq }]) => [name, { m: expAvg, v: expAvgSq }]),
    ),
    gradient: undefined,
  });
}

interface ReadOptions {
  readonly directory: string;
  readonly signal: AbortSignal | undefined;
}

interface LoadedValues {
  readonly values: ReadonlyMap<string, Float32Array>;
  readonly shapes: ReadonlyMap<string, readonly number[]>;
  /** What the session trains from now on: it may take the shape of what it loads. */
  readonly training: TrainingSpec;
}

async function readAdapterValues(
  session: TrainingSession,
  base: BaseModel,
  { directory, signal }: ReadOptions,
): Promise<LoadedValues> {
  const own = session.spec.training;
  const adapter = await readAdapter(directory, { model: base.config, ...(signal === undefined ? {} : { signal }) });
  const { rank, scale, targetModules } = adapter;
  const isSame =
    own.type === 'lora' &&
    rank === own.rank &&
    scale === own.alpha / own.rank &&
    [...targetModules].sort().join() === [...own.targetModules].sort().join();
  if (!isSame && session.hasTrained) throw adapterMismatch(session, adapter);
  const values = new Map<string, Float32Array>();
  const shapes = new Map<string, readonly number[]>();
  for (const [key, { A, B, inFeatures, outFeatures }] of adapter.tensors) {
    values.set(adapterInput(key, 'A'), A).set(adapterInput(key, 'B'), B);
    shapes.set(adapterInput(key, 'A'), [rank, inFeatures]).set(adapterInput(key, 'B'), [outFeatures, rank]);
  }
  // A session that has not trained yet takes the shape of what it loads, since some clients cannot know it.
  return {
    values,
    shapes,
    training: isSame ? own : { ...own, type: 'lora', rank, alpha: scale * rank, targetModules },
  };
}

function adapterMismatch({ spec }: TrainingSession, { rank, scale, targetModules }: AdapterWeights) {
  const own =
    spec.training.type === 'lora'
      ? `rank ${spec.training.rank}, alpha ${spec.training.alpha}, ${spec.training.targetModules.join(' ')}`
      : 'full';
  return complaint({
    code: 'checkpoint_mismatch',
    field: 'modelPackageArn',
    expected: own,
    got: `rank ${rank}, alpha ${scale * rank}, ${targetModules.join(' ')}`,
    remedy: 'load it into a new session, which takes the rank of what it loads',
  });
}

async function readModelValues(base: BaseModel, { directory, signal }: ReadOptions): Promise<LoadedValues> {
  const options = signal === undefined ? {} : { signal };
  await using model = await ModelDirectory.open(directory, options);
  const saved = new Map(model.specs.map(({ name, shape }) => [name, shape]));
  const different = [...base.shapes].find(([name, shape]) => saved.get(name)?.join() !== shape.join());
  if (
    model.config.architecture !== base.config.architecture ||
    different !== undefined ||
    saved.size !== base.shapes.size
  ) {
    throw complaint({
      code: 'checkpoint_mismatch',
      field: 'modelPackageArn',
      expected: `a ${base.config.architecture} model with the layers of ${base.card.id}`,
      got: different === undefined ? `a ${model.config.architecture} model` : `another shape of ${different[0]}`,
      remedy: 'load it into a session on the base model that it was trained from',
    });
  }
  const values = new Map<string, Float32Array>();
  for (const { name } of model.specs) values.set(name, await model.read(name, options));
  return { values, shapes: base.shapes, training: { type: 'full' } };
}
