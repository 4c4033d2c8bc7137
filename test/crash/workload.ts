/** The run that is killed: passes, steps, samples, saves and a resumed session, and everything of it that must not differ. */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import LibsqlDatabase from 'libsql';
import { type DatumFor, LoopwrightError, ServiceClient } from 'loopwright';
import { startCommand } from '../support/command.js';
import { type Fired, type Kill, readFired, type TimedKill, writePlans } from './plans.js';
import { Served } from './served.js';

export interface Outcome {
  /** What every operation answered. */
  readonly results: readonly unknown[];
  /** Version, name and digest of every file that was saved. */
  readonly files: readonly string[];
  /** Session, type, number, state and tokens of every operation with its ledger row. */
  readonly operations: readonly string[];
}

export interface Run {
  readonly outcome: Outcome;
  readonly fired: readonly Fired[];
  readonly durationMs: number;
  readonly log: string;
}

export interface RunOptions {
  readonly folder: string;
  readonly model: string;
  readonly kills?: readonly Kill[];
  readonly timed?: readonly TimedKill[];
  readonly traced?: boolean;
}

const preload = fileURLToPath(new URL('kill-points.mjs', import.meta.url));

/** @throws what the client throws, and when the server ends in another way than by a kill */
export async function runWith({ folder, model, kills = [], timed = [], traced = false }: RunOptions): Promise<Run> {
  const [dataDir, plans, home] = [join(folder, 'data'), join(folder, 'plans'), join(folder, 'home')];
  for (const directory of [dataDir, plans, home]) await mkdir(directory, { recursive: true });
  await writePlans(plans, kills);
  const args = ['serve', '--json', '--data', dataDir, '--model', `tiny=${model}`, '--threads', '1'];
  const env = {
    NODE_OPTIONS: `--import=${preload}`,
    LOOPWRIGHT_CRASH_PLANS: plans,
    ...(traced ? { LOOPWRIGHT_CRASH_TRACE: '1' } : {}),
  };
  const served = new Served((port) =>
    startCommand([...args, '--max-redo-seconds', '0', '--log-level', 'info', '--port', String(port)], { home, env }),
  );
  const startedAt = performance.now();
  const timedFired: Fired[] = [];
  const timers = timed.map(({ role, afterMs }) =>
    setTimeout(() => {
      served.kill(role).then(
        (killed) => killed && timedFired.push({ role, kind: 'time', what: `${afterMs} ms` }),
        () => undefined,
      );
    }, afterMs),
  );
  try {
    const results = await Promise.race([work(await served.url()), served.broken]);
    const durationMs = performance.now() - startedAt;
    for (const timer of timers) clearTimeout(timer);
    await served.stop();
    const operations = readOperations(join(dataDir, await databaseName(dataDir)));
    const outcome = { results, files: await hashes(join(dataDir, 'versions')), operations };
    return {
      outcome,
      durationMs,
      log: served.log,
      fired: [...(await readFired(plans)), ...timedFired],
    };
  } finally {
    for (const timer of timers) clearTimeout(timer);
    await served.stop().catch(() => undefined);
  }
}

async function work(baseUrl: string): Promise<unknown[]> {
  const service = new ServiceClient({ baseUrl });
  await untilAnswered(service);
  const results: unknown[] = [];
  const first = await service.createLoraTrainingClient({ baseModel: 'tiny', rank: 4, seed: 1, name: 'first' });
  let training = first;
  for (let step = 0; step < 4; step++) {
    const sampler = await training.saveWeightsAndGetSamplingClient();
    const samples = [0, 1].map((k) =>
      sampler.sample([5, 6, 7 + k], { maxTokens: 60, numSamples: 4, seed: 10 * step + k }),
    );
    const scores = sampler.computeLogprobs([9, 8, 7, 6 + step]);
    const passes = [0, 1].map((k) => training.forwardBackward(batch(3 * step + k), 'cross_entropy'));
    const optim = training.optimStep({ learningRate: 1e-3 });
    const save = training.saveState();
    results.push(await Promise.all([...samples, scores, ...passes, optim]), await save);
    if (step !== 1) continue;
    const { modelPackageArn } = await save;
    training = await service.createTrainingClientFromStateWithOptimizer({ modelPackageArn, name: 'second' });
  }
  await service.close();
  return results;
}

/** A server that never answered is given up soon, as its address may be wrong; one that is killed as it starts deserves more patience. */
async function untilAnswered(service: ServiceClient): Promise<void> {
  for (let tries = 0; tries < 20; tries++) {
    try {
      await service.listBaseModels();
      return;
    } catch (error) {
      if (!LoopwrightError.isInstance(error) || error.code !== 'connection_lost') throw error;
    }
  }
}

function batch(seed: number): DatumFor<'cross_entropy'>[] {
  return Array.from({ length: 4 }, (_, d) => {
    const tokens = Array.from({ length: 61 }, (_unused, t) => 3 + ((t * 7 + d * 13 + seed * 5) % 90));
    const targetTokens = tokens.slice(1);
    return { modelInput: tokens.slice(0, -1), lossFnInputs: { targetTokens, weights: targetTokens.map(() => 1) } };
  });
}

async function databaseName(dataDir: string): Promise<string> {
  const names = (await readdir(dataDir)).filter((name) => name.endsWith('.db') && name !== 'lock.db');
  if (names.length !== 1) throw new Error(`one database was expected in ${dataDir}, there are ${names.length}`);
  return names[0]!;
}

const query = `SELECT s.name || ' ' || o.type || ' #' || coalesce(o.sequence_number, o.payload_hash) || ' ' || o.status || ' reads '
  || coalesce(o.reads_version, '-') || ' tokens ' || coalesce(l.prefill_tokens || '/' || l.sample_tokens || '/' || l.training_tokens
  || ' ' || l.session_name || ' ' || l.base_model || ' ' || l.operation_type, 'free') AS line
  FROM operations o JOIN sessions s ON s.id = o.session_id LEFT JOIN ledger l ON l.operation_id = o.id`;

/** A ledger row without its operation must not be, so those are lines too. */
const strays = `SELECT 'stray ' || operation_type || ' ' || operation_id AS line FROM ledger
  WHERE operation_id NOT IN (SELECT id FROM operations)`;

function readOperations(path: string): string[] {
  const database = new LibsqlDatabase(path, {});
  const rows = [query, strays].flatMap((sql) => database.prepare(sql).all([]) as { line: string }[]); // true: the column named
  database.close();
  return rows.map(({ line }) => line).sort();
}

async function hashes(versions: string): Promise<string[]> {
  const entries = await readdir(versions, { recursive: true, withFileTypes: true });
  const told = entries
    .filter((entry) => entry.isFile())
    .map(async ({ name, parentPath }) => {
      const bytes = await readFile(join(parentPath, name));
      return `${join(parentPath.slice(versions.length), name)} ${createHash('sha256').update(bytes).digest('hex')}`;
    });
  return (await Promise.all(told)).sort();
}
