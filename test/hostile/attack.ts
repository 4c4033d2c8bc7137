/** Attacks a server over its socket, request by request, and says what no answer may be. */
import { readFile } from 'node:fs/promises';
import { Agent, request as httpRequest } from 'node:http';
import { RawServer } from '../support/raw-server.js';
import { type Attack, type HostileRequest, mutate } from './mutations.js';
import { type Fill, prepareSession, type RecordedRequest } from './requests.js';

/** An answer takes longer than that only where something hangs; a result request may be held for 50 s. */
const answerMs = 55_000;
/** A session is looked after so often: what was done to it may have ended it. */
const careEvery = 20;

interface Reply {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

export interface Target {
  readonly url: string;
  readonly pid: number;
  readonly requests: readonly RecordedRequest[];
}

export class Attacker {
  readonly #target: Target;
  readonly #server: RawServer;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 4 });
  /** Answers by status. */
  readonly statuses = new Map<number, number>();
  peakBytes = 0;
  #turn = 0;
  #sessions = 0;
  #name = '';
  #number = 1;
  #fill: Fill = (value) => value;

  constructor(target: Target) {
    this.#target = target;
    this.#server = new RawServer(target.url);
  }

  /** @throws when the answer is a fault, does not come, or names no field; when the server is not well afterwards */
  async run({ index, mutations }: Attack): Promise<void> {
    if (this.#turn++ % careEvery === 0) await this.#care();
    const request = mutate(this.#prepared(this.#target.requests[index]!), mutations);
    const { status, type, text } = await this.#send(request);
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    const shown = `${request.method} ${request.path.slice(0, 200)} ${request.body?.toString().slice(0, 500) ?? ''} -> ${status} ${text.slice(0, 500)}`;
    if (status >= 500) throw new Error(`a fault: ${shown}`);
    if (status >= 400 && request.method !== 'HEAD') checkRefusal(text, type, shown);
    if (text.includes('root:x:0')) throw new Error(`a file of the system: ${shown}`);
    const health = await fetch(`${this.#target.url}/health`);
    if (health.status !== 200) throw new Error(`not well after ${shown}`);
    await health.arrayBuffer();
    if (this.#turn % careEvery === 0) this.peakBytes = Math.max(this.peakBytes, await residentBytes(this.#target.pid));
  }

  close(): void {
    this.#agent.destroy();
  }

  /** The recorded request for the session of the moment, with the number that is its turn. */
  #prepared(request: RecordedRequest): RecordedRequest {
    const filled = this.#fill(request);
    const { body } = filled;
    if (typeof body !== 'object' || body === null || !('sequenceNumber' in body)) return filled;
    return { ...filled, body: { ...body, sequenceNumber: this.#number } };
  }

  async #care(): Promise<void> {
    const detail = this.#name === '' ? undefined : await this.#server.detail(this.#name).catch(() => undefined);
    const last = Number(detail?.LastReceivedSequenceNumber ?? 0);
    this.#number = last + 1;
    if (detail?.TrainingSessionStatus === 'Running' && last < 1e6) return;
    await this.#stopAll();
    this.#name = `target-${++this.#sessions}`;
    this.#fill = await prepareSession(this.#server, this.#name);
    this.#number = 2;
  }

  async #stopAll(): Promise<void> {
    for (const status of ['Running', 'Blocked']) {
      const { body } = await this.#server.control('ListTrainingSessions', { StatusEquals: status });
      const live = (body.TrainingSessionSummaries ?? []) as { TrainingSessionArn: string }[]; // true: what this action answers with
      for (const { TrainingSessionArn } of live) {
        await this.#server.control('StopTrainingSession', {
          TrainingSessionName: TrainingSessionArn.split('/').at(-1),
        });
      }
    }
  }

  #send({ method, path, headers, body }: HostileRequest): Promise<Reply> {
    const { hostname, port } = new URL(this.#target.url);
    const length = body === undefined ? {} : { 'content-length': String(body.length) };
    return new Promise((resolve, reject) => {
      const request = httpRequest(
        // A name that no URL could have is not refused here: it is for the server to do.
        {
          hostname,
          port,
          method,
          path: path === '' ? '/' : path,
          headers: { ...headers, ...length },
          agent: this.#agent,
        },
        (response) => {
          const parts: Buffer[] = [];
          response.on('data', (part: Buffer) => parts.push(part));
          response.on('error', reject);
          response.on('end', () =>
            resolve({
              status: response.statusCode ?? 0,
              type: response.headers['content-type'] ?? '',
              text: Buffer.concat(parts).toString(),
            }),
          );
        },
      );
      request.setTimeout(answerMs, () =>
        request.destroy(new Error(`no answer within ${answerMs / 1000} s: ${method} ${path.slice(0, 200)}`)),
      );
      request.on('error', reject);
      request.end(body);
    });
  }
}

interface Refusal {
  readonly code?: string | null;
  readonly message?: string;
  readonly details?: Details;
  /** Where the wire has a shape of its own. */
  readonly loopwright?: { readonly details?: Details };
}

interface Details {
  readonly field?: string;
  readonly expected?: string;
  readonly got?: string;
}

/** Every refusal of a field says which, what was wanted and what came; each wire has a place of its own for the message. */
function checkRefusal(text: string, type: string, shown: string): void {
  if (!type.includes('json')) throw new Error(`a refusal that is no JSON: ${shown}`);
  const body = JSON.parse(text) as Refusal & { readonly error?: Refusal | string; readonly detail?: string };
  const inner = typeof body.error === 'object' ? body.error : body;
  const {
    code = body.code,
    message = body.detail ?? body.error,
    details = inner.loopwright?.details ?? body.details,
  } = inner;
  const parts = [code, message, details?.field, details?.expected, details?.got];
  const isWhole = parts.every((part) => typeof part === 'string' && part !== '');
  if (!isWhole) throw new Error(`a refusal that does not say what is wrong: ${shown}`);
}

export async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024;
}
