/** Saving a session's weights and optimizer state as files that other tools read, and loading them back. */
import { access } from 'node:fs/promises';
import path from 'node:path';
import { complaint } from '@loopwright/protocol';
import type { SavedFiles } from '../engine.js';
import { type AdapterWeights, readAdapter, writeAdapter } from '../formats/adapter.js';
import { writeFullModel, writeMergedModel } from '../formats/merged-model.js';
import { ModelDirectory } from '../formats/model-directory.js';
import { readOptimizerState, writeOptimizerState } from '../formats/optimizer-state.js';
import type { BaseModel } from './base-model.js';
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

interface SaveOptions {
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
  if (adapter !== undefined)
    files.push(...(await writeAdapter(directory, adapter, { baseModel: base.card.id, ...options })));
  if (adapter === undefined || merge) {
    await using source = await ModelDirectory.open(base.card.directory, options);
    if (adapter === undefined) {
      const weights = new Map([...session.parameters.values()].map(({ name, values }) => [name, values]));
      files.push(...(await writeFullModel(directory, { base: source, weights }, options)));
    } else {
      const merged = await writeMergedModel(path.join(directory, 'merged'), { base: source, adapter }, options);
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
  const isAdapter = await access(path.join(directory, 'adapter_config.json')).then(
    () => true,
    () => false,
  );
  if (isAdapter !== (session.spec.training.type === 'lora')) {
    throw complaint({
      code: 'checkpoint_mismatch',
      field: 'modelPackageArn',
      expected: session.spec.training.type === 'lora' ? 'a saved adapter' : 'a saved whole model',
      got: isAdapter ? 'an adapter' : 'a whole model',
      remedy: 'load it into a session of the same training type',
    });
  }
  const values = isAdapter
    ? await readAdapterValues(session, base, directory, signal)
    : await readModelValues(directory, signal);
  const shapes = new Map([...session.parameters.values()].map(({ name, shape }) => [name, shape]));
  const state = loadOptimizer ? await readOptimizerState(directory, { parameters: shapes, ...options }) : undefined;
  session.restore({
    values,
    step: state?.step ?? 0,
    moments: new Map(
      [...(state?.moments ?? [])].map(([name, { expAvg, expAvgSq }]) => [name, { m: expAvg, v: expAvgSq }]),
    ),
  });
}

async function readAdapterValues(
  session: TrainingSession,
  base: BaseModel,
  directory: string,
  signal: AbortSignal | undefined,
) {
  const { training } = session.spec;
  const adapter = await readAdapter(directory, { model: base.config, ...(signal === undefined ? {} : { signal }) });
  const same =
    training.type === 'lora' && adapter.rank === training.rank && adapter.scale === training.alpha / training.rank;
  const sameModules =
    training.type === 'lora' && [...adapter.targetModules].sort().join() === [...training.targetModules].sort().join();
  if (!same || !sameModules) {
    if (session.hasTrained) throw adapterMismatch(session, adapter);
    // A session that has not trained yet takes the shape of what it loads, since some clients cannot know it.
    session.reshape({
      type: 'lora',
      rank: adapter.rank,
      alpha: adapter.scale * adapter.rank,
      targetModules: adapter.targetModules,
    });
  }
  const values = new Map<string, Float32Array>();
  for (const [key, { A, B }] of adapter.tensors) values.set(adapterInput(key, 'A'), A).set(adapterInput(key, 'B'), B);
  return values;
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

async function readModelValues(directory: string, signal: AbortSignal | undefined): Promise<Map<string, Float32Array>> {
  const options = signal === undefined ? {} : { signal };
  await using model = await ModelDirectory.open(directory, options);
  const values = new Map<string, Float32Array>();
  for (const { name } of model.specs) values.set(name, await model.read(name, options));
  return values;
}
