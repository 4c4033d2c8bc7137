/** A version as one zip file, made while it is sent. Files are stored as they are: weights don't compress. */
import { Readable } from 'node:stream';
import { asLoopwrightError } from '@loopwright/protocol';
import yazl from 'yazl';
import type { BlobStore } from '../blobs/blob-store.js';
import type { OutgoingFile } from './parts.js';

export interface ArchiveOptions {
  readonly blobs: BlobStore;
  readonly workspaceId: string;
  readonly files: readonly OutgoingFile[];
  /** Texts that are no stored files, by name. */
  readonly texts: Readonly<Record<string, string>>;
  /** Written as the time of every file, so that the same version gives the same bytes. */
  readonly atMs: number;
}

export interface Archive {
  readonly stream: Readable;
  readonly sizeBytes: number;
}

/** Every file is verified before the first byte is given out. @throws `blob_damaged` */
export async function openArchive({ blobs, workspaceId, files, texts, atMs }: ArchiveOptions): Promise<Archive> {
  for (const { hash } of files) await blobs.verify({ workspaceId, hash });
  const zip = new yazl.ZipFile();
  const out = zip.outputStream as Readable; // true: it is one, its type says only what can be read from any
  const options = { mtime: new Date(atMs), mode: 0o100644, compress: false };
  let current: Readable | undefined;
  out.once('close', () => current?.destroy());
  zip.on('error', (error) => out.destroy(asLoopwrightError(error)));
  for (const [name, text] of Object.entries(texts)) zip.addBuffer(Buffer.from(text), name, options);
  for (const { name, hash, sizeBytes } of files) {
    zip.addReadStreamLazy(name, { ...options, size: sizeBytes }, (give) => {
      blobs.read({ workspaceId, hash }).then(
        (stream) => {
          current = stream;
          if (out.destroyed) stream.destroy();
          give(null, stream);
        },
        (error: unknown) => give(error, Readable.from([])),
      );
    });
  }
  const sizeBytes = await new Promise<number>((resolve) => {
    // true: it is called with the size, or -1 where that is not known before; its type leaves the argument out
    zip.end(undefined, resolve as () => void);
  });
  return { stream: out, sizeBytes };
}
