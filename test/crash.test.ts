/** A server and its engine that are killed in the middle of work: the same client goes on, and every bit is that of an undisturbed run. */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryDirectory } from '@loopwright/testkit';
import { type DatumFor, ServiceClient } from 'loopwright';
import { expect, test } from 'vitest';
import { type RunningCommand, startCommand } from './support/command.js';
import { makeTinyModel } from './support/tiny-model.js';

type Victim = 'server' | 'engine';

function batch(seed: number): DatumFor<'cross_entropy'>[] {
  return Array.from({ length: 6 }, (_, d) => {
    const tokens = Array.from({ length: 121 }, (_unused, t) => 3 + ((t * 7 + d * 13 + seed * 5) % 90));
    const targetTokens = tokens.slice(1);
    return { modelInput: tokens.slice(0, -1), lossFnInputs: { targetTokens, weights: targetTokens.map(() => 1) } };
  });
}

/** A server in a process of its own, which comes back on its port. */
class Served {
  readonly #start: (port: number) => RunningCommand;
  #command: RunningCommand;
  #port = 0;
  /** Logs of all of its processes. */
  log = '';

  constructor(start: (port: number) => RunningCommand) {
    this.#start = start;
    this.#command = start(0);
  }

  async listening(): Promise<string> {
    const text = await this.#command.output(/"type":"listening"/);
    const url = String(/"url":"([^"]+)"/.exec(text)?.[1]);
    this.#port = Number(new URL(url).port);
    return url;
  }

  async kill(victim: Victim): Promise<void> {
    const { child, end } = this.#command;
    if (victim === 'engine') {
      const children = await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8');
      const [engine] = children.trim().split(' ').map(Number);
      if (engine !== undefined && engine > 0) process.kill(engine, 'SIGKILL');
      return;
    }
    child.kill('SIGKILL');
    this.log += (await end).stderr;
    this.#command = this.#start(this.#port);
    await this.listening();
  }

  async stop(): Promise<void> {
    this.#command.interrupt();
    this.log += (await this.#command.end).stderr;
  }
}

interface Outcome {
  readonly results: unknown[];
  readonly files: readonly string[];
  readonly trainingTokens: unknown;
}

/** Steps of several passes each, samples beside them, and a saved state; `kills` come while the passes of a step run. */
async function run(
  folder: string,
  model: string,
  kills: readonly (readonly Victim[])[],
): Promise<{ readonly outcome: Outcome; readonly log: string }> {
  const dataDir = join(folder, 'data');
  const args = ['serve', '--json', '--data', dataDir, '--model', `tiny=${model}`, '--threads', '1'];
  const start = (port: number) =>
    startCommand([...args, '--max-redo-seconds', '0', '--log-level', 'info', '--port', String(port)], {
      home: join(folder, 'home'),
    });
  const served = new Served(start);
  const url = await served.listening();
  const service = new ServiceClient({ baseUrl: url });
  const results: unknown[] = [];
  const training = await service.createLoraTrainingClient({ baseModel: 'tiny', rank: 4, seed: 1, name: 'run' });
  for (const [index, victims] of kills.entries()) {
    const sampler = await training.saveWeightsAndGetSamplingClient();
    const samples = [0, 1].map((k) =>
      sampler.sample([5, 6, 7 + k], { maxTokens: 200, numSamples: 4, seed: 10 * index + k }),
    );
    const passes = [0, 1, 2].map((k) => training.forwardBackward(batch(3 * index + k), 'cross_entropy'));
    await passes[0]; // a gradient is pending, and a snapshot is being written
    for (const victim of victims) await served.kill(victim);
    const step = training.optimStep({ learningRate: 1e-3 });
    results.push(await Promise.all([...samples, ...passes]), await step);
  }
  const { modelPackageArn } = await training.saveState();
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': 'SageMaker.DescribeTrainingSession' },
    body: JSON.stringify({ TrainingSessionName: 'run' }),
  });
  const { TrainingSessionDetail: detail } = (await answer.json()) as {
    TrainingSessionDetail: { BillableTokenUsage: { TrainingTokenCount: unknown } };
  }; // true: what this action answers with
  await service.close();
  await served.stop();
  const number = modelPackageArn.slice(modelPackageArn.lastIndexOf('/') + 1);
  const files = await hashes(join(dataDir, 'versions'), number);
  const outcome = { results, files, trainingTokens: detail.BillableTokenUsage.TrainingTokenCount };
  return { outcome, log: served.log };
}

/** Names and digests of the files of a version. */
async function hashes(versions: string, number: string): Promise<string[]> {
  const entries = await readdir(versions, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.parentPath.endsWith(`/${number}`));
  const told = files.map(async ({ name, parentPath }) => {
    const bytes = await readFile(join(parentPath, name));
    return `${name} ${createHash('sha256').update(bytes).digest('hex')}`;
  });
  return (await Promise.all(told)).sort();
}

test.runIf(process.platform === 'linux')(
  'killed servers and engines leave no trace in results, weights and bill of a run',
  async () => {
    await using folder = await temporaryDirectory();
    const model = await makeTinyModel(join(folder.path, 'model'));
    const calm = await run(join(folder.path, 'calm'), model, [[], [], [], []]);
    const kills: Victim[][] = [['engine'], ['server'], ['server', 'server'], ['engine', 'server']];
    const shaken = await run(join(folder.path, 'shaken'), model, kills);
    expect(calm.outcome.files.length).toBeGreaterThan(1);
    expect(shaken.outcome).toEqual(calm.outcome);
    expect(calm.log).not.toContain('made anew');
    expect(shaken.log).toContain('"from":"snapshot"');
  },
);
