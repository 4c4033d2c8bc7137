/** Files of saved versions for download: addresses that are signed and end, fetched without a key. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { complaint, type VersionId } from '@loopwright/protocol';
import type { BlobStore } from '../blobs/blob-store.js';
import type { Clock } from '../clock.js';
import type { Registry } from '../registry/registry.js';
import { downloadPath } from './paths.js';

/** How long an address is good for. */
const lifetimeMs = 900_000;
export interface DownloadsOptions {
  readonly registry: Registry;
  readonly blobs: BlobStore;
  readonly clock: Clock;
  readonly workspaceId: string;
}

export class Downloads {
  readonly #options: DownloadsOptions;
  /** Of this process: addresses don't outlive it. */
  readonly #secret = randomBytes(32);

  constructor(options: DownloadsOptions) {
    this.#options = options;
  }

  /** An address for each file of a version, by the file's path. */
  async files(
    version: VersionId,
    origin: string,
  ): Promise<{ readonly urls: Readonly<Record<string, string>>; readonly expiresAtMs: number }> {
    const files = await this.#options.registry.files(this.#options.workspaceId, version);
    const expiresAtMs = this.#options.clock.now() + lifetimeMs;
    const urls = files.map(({ path }) => [path, this.#sign({ version, path, expiresAtMs }, origin)] as const);
    return { urls: Object.fromEntries(urls), expiresAtMs };
  }

  #sign(file: SignedFile, origin: string): string {
    const url = new URL(downloadPath, origin);
    url.searchParams.set('version', file.version);
    url.searchParams.set('path', file.path);
    url.searchParams.set('expires', String(file.expiresAtMs));
    url.searchParams.set('signature', this.#signature(file));
    return url.href;
  }

  #signature({ version, path, expiresAtMs }: SignedFile): string {
    return createHmac('sha256', this.#secret)
      .update(JSON.stringify([version, path, expiresAtMs]))
      .digest('hex');
  }

  /** @throws `unauthenticated` for an address that was not signed here, or has ended; `unknown_version`, `not_found` */
  async read(query: Readonly<Record<string, string>>): Promise<Uint8Array> {
    const { version = '', path = '', expires = '', signature = '' } = query;
    const file = { version, path, expiresAtMs: Number(expires) };
    const expected = Buffer.from(this.#signature(file));
    const given = Buffer.from(signature);
    const isSigned = given.length === expected.length && timingSafeEqual(given, expected);
    if (!isSigned || file.expiresAtMs < this.#options.clock.now()) {
      throw complaint({
        code: 'unauthenticated',
        field: 'signature',
        expected: 'an address that this server signed in the last quarter of an hour',
        got: isSigned ? 'one that has ended' : 'another',
        remedy: 'ask for the addresses again',
      });
    }
    const { registry, blobs, workspaceId } = this.#options;
    await registry.get(workspaceId, version);
    const files = await registry.files(workspaceId, version);
    const found = files.find((one) => one.path === path);
    if (found === undefined)
      throw complaint({ code: 'not_found', field: 'path', expected: 'a file of the version', got: 'another' });
    return blobs.get({ workspaceId, hash: found.hash });
  }
}

interface SignedFile {
  readonly version: VersionId;
  readonly path: string;
  readonly expiresAtMs: number;
}
