/** One run on an MLflow server. */
import * as z from 'zod';
import { type Alarm, alarmText, levelRank } from '../../guard/alarm.js';
import type { TrackedEnd, TrackedRun, TrackedStep } from '../tracker.js';
import { type MlflowClient, MlflowFailure } from './mlflow-client.js';
import { cut, maxTag, nameFor, paramsOf } from './names.js';

const experimentId = z.string().min(1);
const foundExperiment = z.object({ experiment: z.object({ experiment_id: experimentId }) });
const createdExperiment = z.object({ experiment_id: experimentId });
const run = z.object({
  info: z.object({ run_id: z.string().min(1), experiment_id: experimentId }),
  data: z.object({ params: z.array(z.object({ key: z.string(), value: z.string() })).optional() }).optional(),
});
const runAnswer = z.object({ run });
type RunAnswer = z.infer<typeof runAnswer>;
const foundRuns = z.object({ runs: z.array(run).optional() });
const anything = z.unknown();

/** Of one `log-batch`: MLflow refuses more. */
const maxMetrics = 1000;
/** Params, and tags. */
const maxPairs = 100;

interface Pair {
  readonly key: string;
  readonly value: string;
}

export class MlflowRun {
  readonly id: string;
  readonly link: string;
  readonly #client: MlflowClient;
  #params: readonly Pair[];
  #colons = true;

  private constructor(client: MlflowClient, { run }: RunAnswer, params: readonly Pair[]) {
    this.#client = client;
    this.#params = params;
    this.id = run.info.run_id;
    this.link = `${client.uri}/#/experiments/${run.info.experiment_id}/runs/${this.id}`;
  }

  /**
   * Makes the run; or goes on in the one that it was, if that is still there: by its id, or by our tag, should the answer to an earlier attempt have been
   * lost.
   *
   * @throws {MlflowFailure}
   */
  static async open(client: MlflowClient, tracked: TrackedRun, experiment: string): Promise<MlflowRun> {
    const { name, tags, startedAtMs, resumed } = tracked;
    const params = paramsOf(tracked.config).map(([key, value]): Pair => ({ key, value }));
    const id = await experimentOf(client, experiment);
    const earlier = (await byId(client, resumed?.reference)) ?? (await byTag(client, id, tracked.id));
    if (earlier === undefined) {
      const body = { experiment_id: id, run_name: name, start_time: startedAtMs, tags: pairsOf(tags) };
      return new MlflowRun(client, await client.post('runs/create', body, runAnswer), params);
    }
    // A param can't be changed: one that is now set otherwise is told by a tag.
    const known = new Map(earlier.run.data?.params?.map(({ key, value }) => [key, value]));
    const own = new MlflowRun(
      client,
      earlier,
      params.filter(({ key }) => !known.has(key)),
    );
    if (resumed === undefined) return own;
    const changed = params.filter(({ key, value }) => known.has(key) && known.get(key) !== value);
    // Before the tags that it has already: of more than fit into a call the last are left out.
    const told = {
      'resumed.after_step': String(resumed.afterStep),
      ...Object.fromEntries(changed.map(({ key, value }) => [`resumed.${key}`, value])),
    };
    await client.post('runs/update', { run_id: own.id, status: 'RUNNING' }, anything);
    const body = { run_id: own.id, tags: pairsOf({ ...told, ...tags }).slice(0, maxPairs) };
    await client.post('runs/log-batch', body, anything);
    return own;
  }

  /** Sends the settings that aren't sent yet. What the server refuses is left out. @throws {MlflowFailure} */
  async logParams(): Promise<void> {
    while (this.#params.length > 0) {
      const params = this.#params.slice(0, maxPairs);
      const rest = this.#params.slice(maxPairs);
      try {
        await this.#client.post('runs/log-batch', { run_id: this.id, params }, anything);
      } catch (error) {
        if (!(error instanceof MlflowFailure) || error.isPassing) throw error;
        this.#params = rest;
        throw error;
      }
      this.#params = rest;
    }
  }

  /** Sends the first of these steps, as many as one call takes. @returns how many @throws {MlflowFailure} */
  async logSteps(steps: readonly TrackedStep[]): Promise<number> {
    let count = 0;
    let values = 0;
    for (const { metrics, alarms = [] } of steps) {
      const own = Object.keys(metrics).length + alarms.length;
      if (count > 0 && values + own > maxMetrics) break;
      count += 1;
      values += own;
    }
    const sent = steps.slice(0, count);
    try {
      await this.#log(sent);
    } catch (error) {
      // Servers older than 2.19, and those on Windows, take no colons in names.
      const isRefused = error instanceof MlflowFailure && error.code === 'INVALID_PARAMETER_VALUE';
      if (!isRefused || !this.#colons) throw error;
      this.#colons = false;
      await this.#log(sent);
    }
    return count;
  }

  /** @throws {MlflowFailure} */
  async end({ status, endedAtMs }: TrackedEnd): Promise<void> {
    const words = { done: 'FINISHED', failed: 'FAILED', interrupted: 'KILLED' } as const;
    await this.#client.post('runs/update', { run_id: this.id, status: words[status], end_time: endedAtMs }, anything);
  }

  async #log(steps: readonly TrackedStep[]): Promise<void> {
    const metrics = steps.flatMap(({ step, atMs, metrics: own, alarms = [] }) =>
      [...Object.entries(own), ...alarms.map(levelOf)].map(([name, value]) => ({
        ...{ key: nameFor(name, { colons: this.#colons }), value, timestamp: Math.round(atMs), step },
      })),
    );
    // The newest of each: a tag has one value.
    const alarms = steps.flatMap(({ alarms: own = [] }) => own.map((alarm) => [alarm.name, alarmText(alarm)] as const));
    const tags = pairsOf(Object.fromEntries(alarms)).slice(0, maxPairs);
    for (let at = 0; at < metrics.length; at += maxMetrics) {
      const body = { run_id: this.id, metrics: metrics.slice(at, at + maxMetrics) };
      await this.#client.post('runs/log-batch', body, anything);
    }
    if (tags.length > 0) await this.#client.post('runs/log-batch', { run_id: this.id, tags }, anything);
  }
}

/** As a metric, so that runs can be compared and searched by it: 1 note, 2 warn, 3 stop. */
function levelOf({ name, level }: Alarm): readonly [string, number] {
  return [name, levelRank(level) + 1];
}

function pairsOf(tags: Readonly<Record<string, string>>): Pair[] {
  return Object.entries(tags).map(([key, value]) => ({ key: nameFor(key), value: cut(value, maxTag) }));
}

async function byId(client: MlflowClient, id: string | undefined): Promise<RunAnswer | undefined> {
  if (id === undefined) return undefined;
  try {
    return await client.get('runs/get', { run_id: id }, runAnswer);
  } catch (error) {
    if (error instanceof MlflowFailure && error.code === 'RESOURCE_DOES_NOT_EXIST') return undefined;
    throw error;
  }
}

async function byTag(client: MlflowClient, experiment: string, id: string): Promise<RunAnswer | undefined> {
  const filter = `tags.\`loopwright.run\` = '${id.replaceAll("'", '')}'`;
  const body = { experiment_ids: [experiment], filter, max_results: 1 };
  const { runs = [] } = await client.post('runs/search', body, foundRuns);
  return runs[0] && { run: runs[0] };
}

async function experimentOf(client: MlflowClient, name: string): Promise<string> {
  const find = async (): Promise<string> => {
    const answer = await client.get('experiments/get-by-name', { experiment_name: name }, foundExperiment);
    return answer.experiment.experiment_id;
  };
  try {
    return await find();
  } catch (error) {
    if (!(error instanceof MlflowFailure) || error.code !== 'RESOURCE_DOES_NOT_EXIST') throw error;
  }
  try {
    return (await client.post('experiments/create', { name }, createdExperiment)).experiment_id;
  } catch (error) {
    // Another run made it meanwhile.
    if (error instanceof MlflowFailure && error.code === 'RESOURCE_ALREADY_EXISTS') return find();
    throw error;
  }
}
