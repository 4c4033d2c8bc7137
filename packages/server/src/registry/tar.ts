/** A version as one tar, made while it is sent, for clients that unpack no zip. */
import { Readable } from 'node:stream';
import { createTarPacker, type TarHeader } from 'modern-tar';
import type { ArchiveOptions } from './archive.js';

export interface Tar {
  readonly stream: ReadableStream<Uint8Array>;
  readonly sizeBytes: number;
}

const block = 512;
const padded = (size: number) => Math.ceil(size / block) * block;

/** Every file is verified before the first byte is given out. @throws `blob_damaged` */
export async function openTar({ blobs, workspaceId, files, texts, atMs }: ArchiveOptions): Promise<Tar> {
  for (const { hash } of files) await blobs.verify({ workspaceId, hash });
  const { readable, controller } = createTarPacker();
  const headerOf = (name: string, size: number): TarHeader => ({
    ...{ name, size, type: 'file', mode: 0o644, mtime: new Date(atMs) },
  });
  const said = Object.entries(texts).map(([name, text]) => [name, Buffer.from(text)] as const);
  const pack = async (): Promise<void> => {
    for (const [name, bytes] of said) {
      await ReadableStream.from([new Uint8Array(bytes)]).pipeTo(controller.add(headerOf(name, bytes.length)));
    }
    for (const { name, hash, sizeBytes } of files) {
      const stream = await blobs.read({ workspaceId, hash });
      // true: the same standard stream, whose types come from two places
      const content = Readable.toWeb(stream) as unknown as ReadableStream<Uint8Array>;
      await content.pipeTo(controller.add(headerOf(name, sizeBytes)));
    }
    controller.finalize();
  };
  pack().catch((error: unknown) => controller.error(error instanceof Error ? error : new Error(String(error))));
  const sizes = [...said.map(([, bytes]) => bytes.length), ...files.map(({ sizeBytes }) => sizeBytes)];
  // A header, the content and its padding for each; at the end two blocks of nothing.
  return { stream: readable, sizeBytes: sizes.reduce((sum, size) => sum + block + padded(size), 2 * block) };
}
