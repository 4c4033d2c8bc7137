/** A campaign: a server in a process of its own, attacked at every route with requests drawn from a seed. */
import { join } from 'node:path';
import { openService } from '@loopwright/server';
import { temporaryDirectory } from '@loopwright/testkit';
import fc from 'fast-check';
import { startCommand } from '../support/command.js';
import { makeTinyModel } from '../support/tiny-model.js';
import { Attacker } from './attack.js';
import { attacks } from './mutations.js';
import { isAt, type RecordedRequest, recordedRequests, simplestRequest } from './requests.js';

export interface CampaignOptions {
  readonly runs: number;
  readonly seed: number;
}

export interface Campaign {
  readonly statuses: readonly (readonly [number, number])[];
  readonly peakBytes: number;
  /** What the server wrote to its log as errors. */
  readonly errors: string;
}

/** The recording, and of every route that is not in it its simplest request. */
export async function requestsOfEveryRoute(): Promise<RecordedRequest[]> {
  await using folder = await temporaryDirectory();
  const recorded = await recordedRequests();
  const { app, close } = await openService({ dataDir: folder.path, models: [] });
  const missing = app.routes.filter(
    (route) => route.method !== 'ALL' && !recorded.some((request) => isAt(request, route)),
  );
  await close();
  return [...recorded, ...missing.map(simplestRequest)];
}

/** @throws with the smallest requests that break the server, and their seed */
export async function campaign({ runs, seed }: CampaignOptions): Promise<Campaign> {
  await using folder = await temporaryDirectory();
  await makeTinyModel(join(folder.path, 'models', 'tiny'));
  const requests = await requestsOfEveryRoute();
  const args = ['serve', '--port', '0', '--json', '--log-level', 'error', '--max-sessions', '32'];
  const command = startCommand(args, { home: folder.path });
  const { url } = JSON.parse(await command.output(/\n/)) as { url: string }; // true: the first line of --json
  const attacker = new Attacker({ url, pid: command.child.pid!, requests });
  let died = false;
  void command.end.then(() => {
    died = true;
  });
  try {
    const engine = await engineOf(url);
    const property = fc.asyncProperty(attacks(requests.length), async (attack) => {
      if (died) throw new Error('the server has ended');
      await attacker.run(attack);
    });
    await fc.assert(property, { numRuns: runs, seed, endOnFailure: false });
    const last = await engineOf(url);
    if (engine !== undefined && last !== engine) throw new Error('an engine died');
    return { statuses: [...attacker.statuses].sort(([a], [b]) => a - b), peakBytes: attacker.peakBytes, errors: '' };
  } catch (error) {
    command.child.kill('SIGKILL');
    const { stderr } = await command.end;
    const why = error instanceof Error && error.cause instanceof Error ? error.cause.message : '';
    throw new Error(`${error instanceof Error ? error.message : error}\n${why}\n${stderr}`);
  } finally {
    attacker.close();
    command.child.kill('SIGKILL');
    await command.end;
  }
}

async function engineOf(url: string): Promise<string | undefined> {
  const health = (await (await fetch(`${url}/health`)).json()) as { engines?: { incarnation?: string }[] }; // true: of this route
  return health.engines?.[0]?.incarnation;
}
