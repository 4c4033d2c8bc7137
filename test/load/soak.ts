/** Hours in minutes: sessions come and go, train, save, sample and chat, and the memory of the server is looked at all the while. */
import { passBody, type RawServer, sampleBody, stepBody } from '../support/raw-server.js';
import type { MeasuredServer } from './measured-server.js';

export interface Soak {
  readonly minutes: number;
  readonly operations: number;
  readonly sessions: number;
  /** Median resident bytes in the thirds of the soak after its first tenth, in which caches fill. */
  readonly serverBytes: readonly number[];
  readonly engineBytes: readonly number[];
}

const model = 'loopwright-tiny';
const lookEveryMs = 2_000;

export async function soak(server: MeasuredServer, minutes: number): Promise<Soak> {
  const { raw } = server;
  const started = performance.now();
  const untilMs = started + minutes * 60_000;
  const looks: { readonly server: number; readonly engines: number }[] = [];
  const watch = setInterval(() => {
    void server.memory().then((look) => looks.push(look));
  }, lookEveryMs);
  let [operations, sessions] = [0, 0];
  const loop = async (worker: number) => {
    while (performance.now() < untilMs) {
      const name = `soak-${worker}-${sessions++}`;
      await raw.createSession(name, model);
      operations += await lifeOfSession(raw, name);
      await raw.control('StopTrainingSession', { TrainingSessionName: name });
    }
  };
  try {
    await Promise.all([loop(0), loop(1)]);
  } finally {
    clearInterval(watch);
  }
  const settled = looks.slice(Math.floor(looks.length / 10));
  return {
    minutes: (performance.now() - started) / 60_000,
    operations,
    sessions,
    serverBytes: thirds(settled.map((look) => look.server)),
    engineBytes: thirds(settled.map((look) => look.engines)),
  };
}

/** A small run: passes, steps and samples of every size, and a save. @returns its operations */
async function lifeOfSession(raw: RawServer, name: string): Promise<number> {
  let number = 1;
  const train = async (body: object) => raw.submit(name, 'operations', body);
  let count = 0;
  for (let step = 0; step < 5; step++) {
    const pass = await train(passBody(number++, { rows: 4, tokens: 20 }));
    const update = await train(stepBody(number++));
    const save = await train({ sequenceNumber: number++, operationConfig: { saveWeights: { ttlSeconds: 60 } } });
    const samples = await Promise.all(
      [1, 4, 16].map((maxTokens) =>
        raw.submit(name, 'sampling-operations', sampleBody({ maxTokens, numSamples: 2, seed: number })),
      ),
    );
    const ended = await Promise.all([
      ...[pass, update, save].map(({ body }) => raw.result(name, 'operations', String(body.operationId))),
      ...samples.map(({ body }) => raw.result(name, 'sampling-operations', String(body.operationId))),
    ]);
    const failed = ended.find(({ status }) => status !== 'Completed');
    if (failed !== undefined) throw new Error(JSON.stringify(failed).slice(0, 500));
    count += ended.length;
  }
  return count;
}

function thirds(values: readonly number[]): number[] {
  const size = Math.ceil(values.length / 3);
  return [0, 1, 2].map((third) => {
    const sorted = values.slice(third * size, (third + 1) * size).sort((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? 0;
  });
}
