/** What is asked of the hub over HTTP: what a repository holds, and the bytes of a file. */
import { complaint } from '@loopwright/protocol';
import * as z from 'zod';
import { connectionLost, notAHub, type Question, refusal } from './hub-errors.js';
import type { HubName } from './hub-name.js';
import type { HubSettings } from './hub-settings.js';
import { modelKind, type RepositoryKind } from './repository-kind.js';
import { StallGuard } from './stall-guard.js';

/** A file, with what its content must hash to. */
export interface RepositoryFile {
  readonly path: string;
  readonly sizeBytes: number;
  /** Of the content or, for small files, of git's object: `blob <size>\0` before the content. */
  readonly hash: { readonly algorithm: 'sha256' | 'git-sha1'; readonly hex: string };
}

export interface License {
  /** Such as `apache-2.0`; `other` where `name` says more, undefined where the repository says nothing. */
  readonly id: string | undefined;
  readonly name?: string;
  readonly link?: string;
}

export interface RepositoryInfo {
  readonly repository: string;
  readonly commit: string;
  readonly license: License;
  /** How access is given: by anybody's acceptance of the licence, or by the owner's decision. */
  readonly gated: 'auto' | 'manual' | undefined;
  /** What the card says of the parts of a data set, as it says it. */
  readonly configs?: readonly unknown[];
  readonly files: readonly RepositoryFile[];
}

export interface FileStream {
  /** Where in the file the first byte lies: what was asked for or, of servers without ranges, 0. */
  readonly start: number;
  /** @throws `connection_lost` when it ends early or stalls, `cancelled` */
  readonly body: AsyncIterable<Uint8Array>;
}

interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface HubClientOptions extends Pick<HubSettings, 'endpoint' | 'token'> {
  /** Default: models. */
  readonly kind?: RepositoryKind;
  readonly fetch?: typeof fetch;
  /** A connection that is silent for so long is given up; 60 s by default. */
  readonly stallMs?: number;
}

/** Above any repository's listing (1,000 files are 0.3 MB). */
const maxInfoBytes = 32 * 1024 * 1024;

const infoSchema = z.object({
  sha: z.string().regex(/^[0-9a-f]{40}$/),
  gated: z.union([z.literal('auto'), z.literal('manual'), z.boolean()]).nullish(),
  cardData: z
    .looseObject({
      license: z.union([z.string().max(200), z.array(z.string().max(200)).max(20)]).nullish(),
      license_name: z.string().max(200).nullish(),
      license_link: z.string().max(2000).nullish(),
      configs: z.array(z.unknown()).max(10_000).nullish().catch(undefined),
    })
    .nullish(),
  siblings: z
    .array(
      z.object({
        rfilename: z.string().min(1).max(1024),
        size: z.number().int().nonnegative().nullish(),
        blobId: z
          .string()
          .regex(/^[0-9a-f]{40}$/)
          .nullish(),
        lfs: z.object({ sha256: z.string().regex(/^[0-9a-f]{64}$/), size: z.number().int().nonnegative() }).nullish(),
      }),
    )
    .max(100_000),
});

export class HubClient {
  readonly endpoint: string;
  readonly kind: RepositoryKind;
  readonly #token: string | undefined;
  readonly #fetch: typeof fetch;
  readonly #stallMs: number;

  /** @throws `invalid_argument` for an endpoint that is no http URL */
  constructor({ endpoint, token, kind = modelKind, fetch = globalThis.fetch, stallMs = 60_000 }: HubClientOptions) {
    if (!URL.canParse(endpoint) || !/^https?:/i.test(endpoint)) {
      throw complaint({
        field: 'HF_ENDPOINT',
        expected: 'an http or https URL',
        got: `${endpoint.length} characters that are none`,
        remedy: 'correct it, or unset it to use https://huggingface.co',
      });
    }
    this.endpoint = endpoint;
    this.kind = kind;
    this.#token = token;
    this.#fetch = fetch;
    this.#stallMs = stallMs;
  }

  /**
   * What a revision holds now.
   *
   * @throws `unknown_model`, `model_gated`, `unauthenticated`, `limit_exceeded`, `connection_lost`, `cancelled`; `model_invalid` for an
   *   answer that isn't one of a hub
   */
  async repository({ repository, revision }: HubName, { signal }: CallOptions = {}): Promise<RepositoryInfo> {
    const question = { repository, revision };
    const path = `/api/${this.kind.plural}/${repository}/revision/${encodeURIComponent(revision)}?blobs=true`;
    using guard = new StallGuard({ stallMs: this.#stallMs, signal });
    const response = await this.#get(path, question, { guard, headers: { accept: 'application/json' } });
    const chunks: Uint8Array[] = [];
    let sizeBytes = 0;
    for await (const chunk of readBody(response, guard)) {
      sizeBytes += chunk.byteLength;
      if (sizeBytes > maxInfoBytes) throw notAHub(this.kind, `more than ${maxInfoBytes} bytes`);
      chunks.push(chunk);
    }
    return parseInfo(repository, { kind: this.kind, json: Buffer.concat(chunks).toString('utf8') });
  }

  /**
   * The bytes of a file from `from` on. Iterate the body to its end, or `break` to close the connection.
   *
   * @throws as {@link HubClient.repository}
   */
  async file(
    { repository, commit, path }: { readonly repository: string; readonly commit: string; readonly path: string },
    { from = 0, signal }: CallOptions & { readonly from?: number } = {},
  ): Promise<FileStream> {
    const guard = new StallGuard({ stallMs: this.#stallMs, signal });
    try {
      const response = await this.#get(
        `/${this.kind.page}${repository}/resolve/${commit}/${path.split('/').map(encodeURIComponent).join('/')}`,
        { repository, revision: commit, file: path },
        // Compressed on the way, a range would be one of other bytes.
        { guard, headers: { 'accept-encoding': 'identity', ...(from === 0 ? {} : { range: `bytes=${from}-` }) } },
      );
      const range = /^bytes (\d+)-/.exec(response.headers.get('content-range') ?? '');
      const start = response.status === 206 ? Number(range?.[1] ?? Number.NaN) : 0;
      if (start !== from && start !== 0) throw notAHub(this.kind, 'another range than was asked for');
      return { start, body: untilDone(response, guard) };
    } catch (error) {
      guard[Symbol.dispose]();
      throw error;
    }
  }

  async #get(
    path: string,
    question: Question,
    { guard, headers }: { readonly guard: StallGuard; readonly headers: Readonly<Record<string, string>> },
  ): Promise<Response> {
    // Sent to the endpoint alone: `fetch` drops this header when a redirect leads to another host, as for large files.
    const authorization = this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` };
    let response: Response;
    try {
      response = await this.#fetch(`${this.endpoint}${path}`, {
        headers: { 'user-agent': 'loopwright', ...headers, ...authorization },
        signal: guard.signal,
      });
    } catch (error) {
      throw guard.cancelled ?? connectionLost(error);
    }
    if (response.ok) return response;
    await response.body?.cancel().catch(() => undefined); // its status says enough
    throw refusal(response, {
      ...question,
      kind: this.kind,
      endpoint: this.endpoint,
      hasToken: this.#token !== undefined,
    });
  }
}

/** The body, and the end of the guard with it. */
async function* untilDone(response: Response, guard: StallGuard): AsyncGenerator<Uint8Array> {
  try {
    yield* readBody(response, guard);
  } finally {
    guard[Symbol.dispose]();
  }
}

async function* readBody(response: Response, guard: StallGuard): AsyncGenerator<Uint8Array> {
  if (response.body === null) return;
  try {
    for await (const chunk of response.body) {
      guard.touch();
      yield chunk;
    }
  } catch (error) {
    throw guard.cancelled ?? connectionLost(error);
  }
}

function parseInfo(
  repository: string,
  { kind, json }: { readonly kind: RepositoryKind; readonly json: string },
): RepositoryInfo {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    throw notAHub(kind, `${json.length} characters that are no JSON`, cause);
  }
  const parsed = infoSchema.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw notAHub(kind, `${issue?.path.join('.') || 'a body'} of another form`, parsed.error);
  }
  const { sha, gated, cardData, siblings } = parsed.data;
  const { license, license_name: name, license_link: link, configs } = cardData ?? {};
  return {
    repository,
    commit: sha,
    license: {
      id: Array.isArray(license) ? license.join(', ') : (license ?? undefined),
      ...(name == null ? {} : { name }),
      ...(link == null ? {} : { link }),
    },
    ...(configs == null ? {} : { configs }),
    gated: gated === true ? 'manual' : gated || undefined,
    // Files without size and hash can't be verified, and are treated as if they weren't there.
    files: siblings.flatMap(({ rfilename: path, size, blobId, lfs }): RepositoryFile[] => {
      if (lfs != null) return [{ path, sizeBytes: lfs.size, hash: { algorithm: 'sha256', hex: lfs.sha256 } }];
      if (size == null || blobId == null) return [];
      return [{ path, sizeBytes: size, hash: { algorithm: 'git-sha1', hex: blobId } }];
    }),
  };
}
