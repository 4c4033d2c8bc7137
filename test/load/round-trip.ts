/** How much the service adds to the engine's own time, for the smallest operation: one new token of the bundled model. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import Database from 'libsql';
import { ServiceClient } from 'loopwright';
import { sampleBody } from '../support/raw-server.js';
import type { MeasuredServer } from './measured-server.js';

export interface RoundTrip {
  readonly how: string;
  readonly count: number;
  /** Milliseconds, from before the submission to the result in hand. */
  readonly medianMs: number;
  readonly p90Ms: number;
  /** The engine's own, of the same operations. */
  readonly engineMedianMs: number;
  /** Median of the differences, operation by operation. */
  readonly addedMedianMs: number;
  readonly addedP90Ms: number;
  /** An HTTP request that does nothing, made between the operations: how fast the machine was at that time. */
  readonly nothingMedianMs: number;
}

/** Until the compiler of the two processes has seen what they do all day. */
const warmUp = 500;

/** One after another: by two requests by hand, then by the client. */
export async function roundTrips(server: MeasuredServer, count: number): Promise<RoundTrip[]> {
  const { raw, url, dataDir } = server;
  const session = 'round-trip';
  await using nothing = await serverOfNothing();
  await raw.createSession(session, 'loopwright-tiny');
  const byHand = await timed(count, nothing, async (seed) => {
    const { body } = await raw.submit(session, 'sampling-operations', sampleBody({ seed }));
    const id = String(body.operationId);
    const { body: result } = await raw.poll(session, 'sampling-operations', id);
    if (result.status !== 'Completed') throw new Error(JSON.stringify(result));
    return id;
  });
  const service = new ServiceClient({ baseUrl: url });
  const training = await service.createLoraTrainingClient({ baseModel: 'loopwright-tiny', rank: 2, seed: 1 });
  const sampler = await training.saveWeightsAndGetSamplingClient();
  const byClient = await timed(count, nothing, async (seed) => {
    const future = sampler.sample([5, 6, 7], { maxTokens: 1, seed });
    await future;
    return future.operationId ?? '';
  });
  await service.close();
  const engineMs = engineTimes(dataDir);
  return [summary('two requests', byHand, engineMs), summary('client', byClient, engineMs)];
}

interface Timed {
  readonly id: string;
  readonly ms: number;
  readonly nothingMs: number;
}

async function timed(count: number, nothing: Nothing, operation: (seed: number) => Promise<string>): Promise<Timed[]> {
  const all: Timed[] = [];
  for (let turn = 0; turn < count + warmUp; turn++) {
    const started = performance.now();
    const id = await operation(turn);
    const ms = performance.now() - started;
    const again = performance.now();
    await nothing.request();
    if (turn >= warmUp) all.push({ id, ms, nothingMs: performance.now() - again });
  }
  return all;
}

interface Nothing extends AsyncDisposable {
  request(): Promise<void>;
}

/** A server in a process of its own that reads a request and answers it. */
async function serverOfNothing(): Promise<Nothing> {
  const program = `require('node:http')
    .createServer((request, answer) => request.resume().on('end', () => answer.end('{}')))
    .listen(0, '127.0.0.1', function () { console.log(this.address().port) })`;
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [port] = (await once(child.stdout, 'data')) as [Buffer]; // true: what a pipe without an encoding gives
  const url = `http://127.0.0.1:${port.toString().trim()}/`;
  return {
    request: async () => {
      await (await fetch(url, { method: 'POST', body: '{}' })).text();
    },
    [Symbol.asyncDispose]: async () => {
      child.kill();
      await once(child, 'close');
    },
  };
}

/** The ledger of the log says how long the engine worked for each operation. */
function engineTimes(dataDir: string): ReadonlyMap<string, number> {
  const database = new Database(join(dataDir, 'loopwright.db'), { readonly: true });
  const rows = database.prepare('SELECT id, engine_ms FROM operations WHERE engine_ms IS NOT NULL').all() as {
    id: string;
    engine_ms: number;
  }[]; // true: the columns asked for
  database.close();
  return new Map(rows.map(({ id, engine_ms }) => [id, engine_ms]));
}

function summary(how: string, all: readonly Timed[], engineMs: ReadonlyMap<string, number>): RoundTrip {
  const engine = all.map(({ id }) => engineMs.get(id) ?? Number.NaN);
  const added = all.map(({ ms }, index) => ms - engine[index]!);
  const total = all.map(({ ms }) => ms);
  return {
    how,
    count: all.length,
    medianMs: quantile(total, 0.5),
    p90Ms: quantile(total, 0.9),
    engineMedianMs: quantile(engine, 0.5),
    addedMedianMs: quantile(added, 0.5),
    addedP90Ms: quantile(added, 0.9),
    nothingMedianMs: quantile(
      all.map(({ nothingMs }) => nothingMs),
      0.5,
    ),
  };
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
