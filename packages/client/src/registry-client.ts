/** RegistryClient: saved versions, by ARN or `group/number`. */
import { asLoopwrightError, LoopwrightError, type VersionChange, type VersionGroup } from '@loopwright/protocol';
import {
  encodeVersionQuery,
  type GroupChange,
  type GroupList,
  groupPath,
  registryPaths,
  type VersionDetail,
  type VersionPage,
  type VersionPart,
  type VersionQuery,
  versionFilePath,
  versionPath,
} from '@loopwright/wires/loopwright';
import { parsePackageArn, parseVersionId, versionId } from '@loopwright/wires/sagemaker';
import { cancelledBy } from './clock.js';
import type { CallOptions, Transport } from './transport.js';

/** A version in a list: everything but its metrics and files. */
export type VersionSummary = VersionPage['versions'][number];

export interface VersionFilter extends Omit<VersionQuery, 'limit' | 'after'>, CallOptions {
  /** Default 100. */
  readonly maxResults?: number;
}

export interface MetricOptions extends CallOptions {
  /** How they were measured: data, number of problems, settings. */
  readonly note?: string;
}

const largestPage = 1000;

/**
 * The registry of a server. Made by a service client, which it outlives in nothing.
 *
 * Versions are named by their ARN or by `group/number`; in answers, `id` is the ARN.
 *
 * @example
 * const { modelPackageArn } = await training.saveWeightsForSampler({ description: 'after 200 steps' });
 * await service.registry.attachMetrics(modelPackageArn, { 'eval/accuracy': 0.52 }, { note: 'held-out, 500 problems' });
 */
export class RegistryClient {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** By name. */
  async groups(options: CallOptions = {}): Promise<readonly VersionGroup[]> {
    return (await this.#json<GroupList>('GET', registryPaths.groups, options)).groups;
  }

  /** @throws `not_found`, `invalid_argument` */
  changeGroup(name: string, change: GroupChange, options: CallOptions = {}): Promise<VersionGroup> {
    return this.#json('PATCH', groupPath(name), { ...options, body: change });
  }

  /** Newest first; without those that have expired or were deleted, unless `ended` asks for them. */
  async list({ maxResults = 100, signal, ...query }: VersionFilter = {}): Promise<VersionSummary[]> {
    const found: VersionSummary[] = [];
    let after: string | undefined;
    do {
      const limit = Math.min(largestPage, maxResults - found.length);
      const page = { ...query, limit, ...(after === undefined ? {} : { after }) };
      const path = `${registryPaths.versions}?${encodeVersionQuery(page)}`;
      const { versions, next } = await this.#json<VersionPage>('GET', path, { signal });
      found.push(...versions);
      after = next;
    } while (after !== undefined && found.length < maxResults);
    return found;
  }

  /** With metrics and files; also one that has expired or was deleted, which has none. @throws `unknown_version` */
  get(version: string, options: CallOptions = {}): Promise<VersionDetail> {
    return this.#json('GET', versionPath(idOf(version)), options);
  }

  /** Changes what is said of a version, all of it or nothing; what the change leaves out stays. @throws `unknown_version`, `invalid_argument` */
  change(version: string, change: VersionChange, options: CallOptions = {}): Promise<VersionDetail> {
    return this.#json('PATCH', versionPath(idOf(version)), { ...options, body: change });
  }

  /** Attaches figures to a version; one of the same name is replaced. @throws as {@link RegistryClient.change} */
  attachMetrics(
    version: string,
    metrics: Readonly<Record<string, number>>,
    { note = '', signal }: MetricOptions = {},
  ): Promise<VersionDetail> {
    const said = Object.fromEntries(Object.entries(metrics).map(([name, value]) => [name, { value, note }]));
    return this.change(version, { metrics: said }, { signal });
  }

  /** The version, its parent, and so on to the one that began at the base model, or whose parent is not known any more. @throws `unknown_version` */
  async lineage(version: string, options: CallOptions = {}): Promise<VersionDetail[]> {
    const line = [await this.get(version, options)];
    for (;;) {
      const parent = line.at(-1)!.lineage.parent; // true: there is one at least
      if (parent === null) return line;
      const found = await this.get(parent, options).catch(asLoopwrightError);
      if (LoopwrightError.isInstance(found)) {
        if (found.code === 'unknown_version') return line;
        throw found;
      }
      line.push(found);
    }
  }

  /** @returns false when it was gone already */
  async delete(version: string, options: CallOptions = {}): Promise<boolean> {
    try {
      await this.#json('DELETE', versionPath(idOf(version)), options);
      return true;
    } catch (error) {
      if (LoopwrightError.isInstance(error) && error.code === 'unknown_version') return false;
      throw error;
    }
  }

  /** The model card as Markdown: what it is, how it came about, what was measured of it. @throws `unknown_version` */
  card(version: string, { signal }: CallOptions = {}): Promise<string> {
    return this.#transport.text({ method: 'GET', path: `${versionPath(idOf(version))}/card`, signal });
  }

  /** The bytes of a file as they come, which the server has verified. @throws `unknown_version`, `not_found`, `blob_damaged`; `connection_lost` when it breaks off */
  file(version: string, path: string, options: CallOptions = {}): AsyncIterable<Uint8Array> {
    return this.#bytes(versionFilePath(idOf(version), path), options);
  }

  /** A zip of all files, of the adapter alone or of the merged model alone, with the model card. @throws as {@link RegistryClient.file} */
  archive(version: string, { part = 'all', ...options }: CallOptions & { readonly part?: VersionPart } = {}) {
    return this.#bytes(`${versionPath(idOf(version))}/archive?part=${part}`, options);
  }

  async *#bytes(path: string, { signal }: CallOptions): AsyncGenerator<Uint8Array> {
    const reader = (await this.#transport.open({ method: 'GET', path, signal })).getReader();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        yield value;
      }
    } catch (cause) {
      if (signal?.aborted === true) throw cancelledBy(signal);
      const message = `the server at ${this.#transport.baseUrl} broke off in the middle of a file`;
      throw new LoopwrightError({ code: 'connection_lost', message, cause });
    } finally {
      await reader.cancel().catch(() => undefined); // nothing to end where it ended
    }
  }

  async #json<T>(
    method: 'GET' | 'PATCH' | 'DELETE',
    path: string,
    { signal, body }: CallOptions & { readonly body?: object },
  ): Promise<T> {
    const content =
      body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
    return (await this.#transport.json({ method, path, signal, ...content })) as T; // the wire's promise; members are checked where they are read
  }
}

/** `group/number` of a version by its ARN or by just that. @throws `invalid_argument` */
function idOf(version: string): string {
  const { group, version: number } = version.startsWith('arn:')
    ? parsePackageArn(version, 'version')
    : parseVersionId(version);
  return versionId({ group, version: number });
}
