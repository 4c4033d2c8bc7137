/** Files of saved versions for download: addresses that are signed and end, fetched without a key. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { Readable } from 'node:stream';
import { complaint, type VersionId } from '@loopwright/protocol';
import type { BlobStore } from '../blobs/blob-store.js';
import type { Clock } from '../clock.js';
import { outgoingFiles } from '../registry/parts.js';
import type { Registry } from '../registry/registry.js';
import { openTar } from '../registry/tar.js';
import type { Version } from '../registry/version.js';
import { downloadPath } from './paths.js';

/** How long an address is good for. */
const lifetimeMs = 900_000;
/** What a signed address names beside files: the whole, as one tar. No file can be called so. */
const wholeArchive = '/archive.tar';
/** An entry by which clients tell an archive that is whole. */
const completeMark = 'checkpoint_complete';

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

  /** An address of the version as one tar: of an adapter its two files, else all. */
  archive(version: VersionId, origin: string): { readonly url: string; readonly expiresAtMs: number } {
    const expiresAtMs = this.#options.clock.now() + lifetimeMs;
    return { url: this.#sign({ version, path: wholeArchive, expiresAtMs }, origin), expiresAtMs };
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

  /** @throws `unauthenticated` for an address that was not signed here, or has ended; `unknown_version`, `not_found`, `blob_damaged` */
  async read(query: Readonly<Record<string, string>>): Promise<Download> {
    const { version: id, path } = this.#checked(query);
    const { registry, blobs, workspaceId } = this.#options;
    const version = await registry.get(workspaceId, id);
    if (path === wholeArchive) return this.#tar(version);
    const file = (await registry.files(workspaceId, id)).find((one) => one.path === path);
    if (file === undefined)
      throw complaint({ code: 'not_found', field: 'path', expected: 'a file of the version', got: 'another' });
    const stream = await blobs.read({ workspaceId, hash: file.hash });
    // true: the same standard stream, whose types come from two places
    const content = Readable.toWeb(stream) as unknown as ReadableStream<Uint8Array>;
    return { stream: content, sizeBytes: file.sizeBytes, type: 'application/octet-stream' };
  }

  async #tar({ id, createdAtMs }: Version): Promise<Download> {
    const { registry, blobs, workspaceId } = this.#options;
    const all = await registry.files(workspaceId, id);
    const files = outgoingFiles(all, all.some(({ path }) => path.startsWith('adapter_')) ? 'adapter' : 'all');
    const tar = await openTar({ blobs, workspaceId, files, texts: { [completeMark]: '' }, atMs: createdAtMs });
    return { ...tar, type: 'application/x-tar' };
  }

  #checked(query: Readonly<Record<string, string>>): SignedFile {
    const { version = '', path = '', expires = '', signature = '' } = query;
    const file = { version, path, expiresAtMs: Number(expires) };
    const expected = Buffer.from(this.#signature(file));
    const given = Buffer.from(signature);
    const isSigned = given.length === expected.length && timingSafeEqual(given, expected);
    if (isSigned && file.expiresAtMs >= this.#options.clock.now()) return file;
    throw complaint({
      code: 'unauthenticated',
      field: 'signature',
      expected: 'an address that this server signed in the last quarter of an hour',
      got: isSigned ? 'one that has ended' : 'another',
      remedy: 'ask for the addresses again',
    });
  }
}

export interface Download {
  readonly stream: ReadableStream<Uint8Array>;
  readonly sizeBytes: number;
  /** Its media type. */
  readonly type: string;
}

interface SignedFile {
  readonly version: VersionId;
  readonly path: string;
  readonly expiresAtMs: number;
}
