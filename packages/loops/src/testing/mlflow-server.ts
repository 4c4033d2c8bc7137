/** A small MLflow server: the calls that a tracker makes, with the checks that the REST API documents. */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as z from 'zod';

const pair = z.strictObject({ key: z.string().min(1).max(250), value: z.string().max(6000) });
const id = z.string().min(1);
const bodies = {
  'experiments/create': z.strictObject({ name: id }),
  'runs/create': z.strictObject({ experiment_id: id, run_name: z.string(), start_time: z.int(), tags: z.array(pair) }),
  'runs/search': z.strictObject({ experiment_ids: z.array(id), filter: z.string(), max_results: z.int() }),
  'runs/update': z.strictObject({
    run_id: id,
    status: z.enum(['RUNNING', 'FINISHED', 'FAILED', 'KILLED']),
    end_time: z.int().optional(),
  }),
  'runs/log-batch': z.strictObject({
    run_id: id,
    metrics: z
      .array(z.strictObject({ key: z.string(), value: z.number(), timestamp: z.int(), step: z.int() }))
      .max(1000)
      .optional(),
    params: z.array(pair).max(100).optional(),
    tags: z.array(pair).max(100).optional(),
  }),
} as const;

export interface StoredMlflowRun {
  readonly name: string;
  status: string;
  readonly tags: Map<string, string>;
  readonly params: Map<string, string>;
  readonly metrics: { readonly key: string; readonly value: number; readonly step: number }[];
}

class Refusal extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string) {
    super(code);
    this.status = status;
    this.code = code;
  }
}

export class FakeMlflow implements AsyncDisposable {
  readonly experiments = new Map<string, string>();
  readonly runs = new Map<string, StoredMlflowRun>();
  readonly calls: string[] = [];
  /** Refuses calls before they are looked at: a status. */
  refuse: ((path: string, headers: IncomingMessage['headers']) => number | undefined) | undefined;
  /** Of older servers. */
  takesColons = true;
  #server: Server | undefined;

  async start(port = 0): Promise<string> {
    const server = createServer((request, response) => {
      void this.#answer(request).then(
        (value) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value)),
        (error: unknown) => {
          const { status, code } = error instanceof Refusal ? error : new Refusal(500, 'INTERNAL_ERROR');
          response.writeHead(status, { 'content-type': 'application/json' });
          response.end(JSON.stringify({ error_code: code, message: 'what was sent: SECRET' }));
        },
      );
    });
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // true: it listens on a port
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server?.closeAllConnections();
    await new Promise<void>((resolve) =>
      this.#server === undefined ? resolve() : this.#server.close(() => resolve()),
    );
    this.#server = undefined;
  }

  async #answer(request: IncomingMessage): Promise<object> {
    const url = new URL(request.url ?? '', 'http://x');
    const path = url.pathname.replace('/api/2.0/mlflow/', '');
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer); // true: no encoding is set
    this.calls.push(path);
    const refused = this.refuse?.(path, request.headers);
    if (refused !== undefined) throw new Refusal(refused, refused === 401 ? 'UNAUTHENTICATED' : 'INTERNAL_ERROR');
    if (request.method === 'GET') return this.#get(path, url.searchParams);
    const text = Buffer.concat(chunks).toString();
    switch (path) {
      case 'experiments/create': {
        const { name } = checked(path, text);
        const experiment = String(this.experiments.size + 1);
        this.experiments.set(name, experiment);
        return { experiment_id: experiment };
      }
      case 'runs/create': {
        const { run_name: name, tags } = checked(path, text);
        const run = { name, status: 'RUNNING', tags: mapOf(tags), params: new Map<string, string>(), metrics: [] };
        this.runs.set(`run${this.runs.size + 1}`, run);
        return { run: this.#run(`run${this.runs.size}`) };
      }
      case 'runs/search': {
        const wanted = /^tags\.`loopwright\.run` = '(.*)'$/.exec(checked(path, text).filter)?.[1];
        const found = [...this.runs].find(([, { tags }]) => tags.get('loopwright.run') === wanted);
        return found === undefined ? {} : { runs: [this.#run(found[0])] };
      }
      case 'runs/update': {
        const { run_id, status } = checked(path, text);
        this.#stored(run_id).status = status;
        return {};
      }
      case 'runs/log-batch': {
        const { run_id, metrics = [], params = [], tags = [] } = checked(path, text);
        const run = this.#stored(run_id);
        const names = this.takesColons ? /^[\w\-.:/ ]+$/ : /^[\w\-./ ]+$/;
        const keys = [...metrics, ...params, ...tags].map(({ key }) => key);
        const isChanged = params.some(({ key, value }) => run.params.has(key) && run.params.get(key) !== value);
        if (isChanged || !keys.every((key) => names.test(key))) throw new Refusal(400, 'INVALID_PARAMETER_VALUE');
        run.metrics.push(...metrics.map(({ key, value, step }) => ({ key, value, step })));
        for (const { key, value } of params) run.params.set(key, value);
        for (const { key, value } of tags) run.tags.set(key, value);
        return {};
      }
      default:
        throw new Refusal(404, 'ENDPOINT_NOT_FOUND');
    }
  }

  #get(path: string, query: URLSearchParams): object {
    if (path === 'runs/get') return { run: this.#run(query.get('run_id') ?? '') };
    const experiment = this.experiments.get(query.get('experiment_name') ?? '');
    if (path !== 'experiments/get-by-name' || experiment === undefined)
      throw new Refusal(404, 'RESOURCE_DOES_NOT_EXIST');
    return { experiment: { experiment_id: experiment, name: query.get('experiment_name') } };
  }

  #run(runId: string): object {
    const { params } = this.#stored(runId);
    const info = { run_id: runId, experiment_id: '1' };
    return { info, data: { params: [...params].map(([key, value]) => ({ key, value })) } };
  }

  #stored(runId: string): StoredMlflowRun {
    const run = this.runs.get(runId);
    if (run === undefined) throw new Refusal(404, 'RESOURCE_DOES_NOT_EXIST');
    return run;
  }
}

function checked<K extends keyof typeof bodies>(path: K, text: string): z.infer<(typeof bodies)[K]> {
  const result = bodies[path].safeParse(JSON.parse(text));
  if (!result.success) throw new Refusal(400, 'INVALID_PARAMETER_VALUE');
  return result.data as z.infer<(typeof bodies)[K]>; // true: the schema of that path
}

function mapOf(pairs: readonly { readonly key: string; readonly value: string }[]): Map<string, string> {
  return new Map(pairs.map(({ key, value }) => [key, value]));
}
