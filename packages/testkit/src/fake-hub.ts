/** A model hub on a loopback port: repositories with the listing, ranges and redirects of the real one, and its ways to fail. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';

export interface FakeRepository {
  /** The commit that `main` means. */
  readonly commit: string;
  readonly files: Readonly<Record<string, Uint8Array | string>>;
  readonly gated?: 'auto' | 'manual';
  readonly license?: string;
  /** Of a data set: the configurations that its card states. */
  readonly configs?: readonly unknown[];
  /** Further revisions that mean this commit. */
  readonly revisions?: readonly string[];
}

export interface HubRequest {
  /** `api`, `hub` or, where large files lie on another host, `store`. */
  readonly kind: 'api' | 'hub' | 'store';
  readonly path: string;
  readonly range: string | undefined;
  readonly authorization: string | undefined;
}

export interface FakeHubOptions {
  /** By `org/name`, data sets by `datasets/org/name`; may be changed while it runs. */
  readonly repositories: Record<string, FakeRepository>;
}

/** Weights are large files; they are hashed by SHA-256 and lie on another host. */
const isLarge = (path: string): boolean => path.endsWith('.safetensors') || path.endsWith('.parquet');

export class FakeHub implements AsyncDisposable {
  /** In the order in which they came. */
  readonly requests: HubRequest[] = [];
  readonly repositories: Record<string, FakeRepository>;
  /** Bytes after which the next answers with that file are cut, first to last. */
  readonly cuts: Record<string, number[]> = {};
  /** Bytes to serve instead of a file's. */
  readonly wrong: Record<string, Uint8Array> = {};
  /** Statuses of the next answers to paths that contain the key, first to last. */
  readonly failures: Record<string, { readonly status: number; readonly headers?: Record<string, string> }[]> = {};
  /** Whether ranges are answered with the whole file. */
  ignoresRanges = false;
  /** Whether answers with a file stop, without an end, after half of it. */
  stalls = false;
  /** Called before a file is answered. */
  onFile: ((path: string) => Promise<void> | void) | undefined;
  readonly #hub: Server;
  readonly #store: Server;

  private constructor({ repositories }: FakeHubOptions) {
    this.repositories = repositories;
    this.#hub = createServer((request, response) => this.#answer('hub', request, response));
    this.#store = createServer((request, response) => this.#answer('store', request, response));
  }

  static async open(options: FakeHubOptions): Promise<FakeHub> {
    const hub = new FakeHub(options);
    await Promise.all([listen(hub.#hub), listen(hub.#store)]);
    return hub;
  }

  /** For HF_ENDPOINT. */
  get url(): string {
    return urlOf(this.#hub);
  }

  /** Requests for the content of a file, by whichever host. */
  downloadsOf(path: string): HubRequest[] {
    return this.requests.filter((request) => request.path.endsWith(`/${path}`) && request.kind !== 'hub');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([close(this.#hub), close(this.#store)]);
  }

  #answer(host: 'hub' | 'store', request: IncomingMessage, response: ServerResponse): void {
    this.#respond(host, request, response).catch((error: unknown) => {
      response.destroy(error instanceof Error ? error : undefined);
    });
  }

  async #respond(host: 'hub' | 'store', request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = new URL(request.url ?? '/', urlOf(this.#hub)).pathname;
    const { range, authorization } = request.headers;
    const isApi = path.startsWith('/api/');
    const file = path.slice(path.lastIndexOf('/') + 1);
    const isElsewhere = host === 'hub' && !isApi && isLarge(file);
    // What the hub serves itself counts as of its store, so that a download is one request there, of any size.
    this.requests.push({ kind: isApi ? 'api' : isElsewhere ? 'hub' : 'store', path, range, authorization });
    const failing = Object.entries(this.failures).find(([key, left]) => path.includes(key) && left.length > 0);
    const failure = failing?.[1].shift();
    if (failure !== undefined) return end(response, failure.status, { ...failure.headers });
    const [, ...parts] = path.split('/');
    if (isApi) {
      const [, plural, org, name, , revision = ''] = parts;
      const prefix = plural === 'datasets' ? 'datasets/' : '';
      return this.#describe(response, `${prefix}${org}/${name}`, decodeURIComponent(revision));
    }
    if (isElsewhere) return end(response, 302, { location: `${urlOf(this.#store)}${path}` });
    const nameParts = parts[0] === 'datasets' ? 3 : 2;
    // After `resolve` and the commit.
    const within = parts
      .slice(nameParts + 2)
      .map(decodeURIComponent)
      .join('/');
    const content = this.repositories[parts.slice(0, nameParts).join('/')]?.files[within];
    if (content === undefined) return end(response, 404, { 'x-error-code': 'EntryNotFound' });
    await this.onFile?.(file);
    this.#send(response, { file, range, bytes: this.wrong[file] ?? Buffer.from(content) });
  }

  #describe(response: ServerResponse, name: string, revision: string): void {
    const repository = this.repositories[name];
    if (repository === undefined) {
      end(response, 401, { 'x-error-code': 'RepoNotFound' });
      return;
    }
    const { commit, files, gated = false, license, configs, revisions = [] } = repository;
    if (!['main', commit, ...revisions].includes(revision)) {
      end(response, 404, { 'x-error-code': 'RevisionNotFound' });
      return;
    }
    const siblings = Object.entries(files).map(([rfilename, content]) => {
      const bytes = Buffer.from(content);
      const blobId = createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex');
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      const lfs = { sha256, size: bytes.length, pointerSize: 134 };
      return { rfilename, size: bytes.length, blobId, ...(isLarge(rfilename) ? { lfs } : {}) };
    });
    const cardData = license === undefined && configs === undefined ? {} : { cardData: { license, configs } };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ id: name, sha: commit, gated, siblings, ...cardData }));
  }

  #send(
    response: ServerResponse,
    { file, range, bytes }: { readonly file: string; readonly range: string | undefined; readonly bytes: Uint8Array },
  ): void {
    const from = this.ignoresRanges ? 0 : Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1] ?? 0);
    const isPart = range !== undefined && !this.ignoresRanges;
    response.writeHead(isPart ? 206 : 200, {
      'content-length': bytes.length - from,
      ...(isPart ? { 'content-range': `bytes ${from}-${bytes.length - 1}/${bytes.length}` } : {}),
    });
    const rest = bytes.subarray(from);
    const cut = this.stalls ? Math.floor(rest.length / 2) : this.cuts[file]?.shift();
    if (cut === undefined) response.end(rest);
    else if (this.stalls) response.write(rest.subarray(0, cut));
    else response.write(rest.subarray(0, cut), () => response.destroy());
  }
}

function end(response: ServerResponse, status: number, headers: Record<string, string>): void {
  response.writeHead(status, headers);
  response.end();
}

async function listen(server: Server): Promise<void> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
}

async function close(server: Server): Promise<void> {
  const closed = new Promise<void>((done) => server.close(() => done()));
  server.closeAllConnections();
  await closed;
}

function urlOf(server: Server): string {
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
}
