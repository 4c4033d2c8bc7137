/** The tar of a version: whole, of the length that it says, and no half one where a file is damaged or the reader goes away. */
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { rejection, temporaryDirectory } from '@loopwright/testkit';
import { unpackTar } from 'modern-tar';
import { expect, it } from 'vitest';
import { FileBlobStore } from '../blobs/file-blob-store.js';
import { openTar } from './tar.js';

const workspaceId = 'default';
const atMs = 1_800_000_000_000;
const texts = { checkpoint_complete: '' };

async function stored(blobs: FileBlobStore, contents: Readonly<Record<string, string>>) {
  return Promise.all(
    Object.entries(contents).map(async ([name, text]) => {
      const bytes = Buffer.from(text);
      return { name, path: name, hash: await blobs.put(workspaceId, bytes), sizeBytes: bytes.length };
    }),
  );
}

it('holds texts and stored files whole, is as long as it says, and has the same bytes each time', async () => {
  await using folder = await temporaryDirectory();
  const blobs = new FileBlobStore({ root: folder.path });
  const contents = { 'adapter_config.json': '{"é": 1}', 'adapter_model.safetensors': 'weights '.repeat(200_000) };
  const files = await stored(blobs, contents);
  const open = () => openTar({ blobs, workspaceId, files, texts, atMs });
  const { stream, sizeBytes } = await open();
  const tar = await buffer(stream);
  expect(tar.length).toBe(sizeBytes);
  const entries = await unpackTar(tar);
  expect(entries.map(({ header, data }) => [header.name, Buffer.from(data ?? []).toString()])).toEqual(
    Object.entries({ ...texts, ...contents }),
  );
  expect(entries.map(({ header }) => [header.type, header.mode])).toEqual(entries.map(() => ['file', 0o644]));
  expect((await buffer((await open()).stream)).equals(tar)).toBe(true);
});

it('is refused before its first byte where a file is damaged, and ends when its reader goes away', async () => {
  await using folder = await temporaryDirectory();
  const blobs = new FileBlobStore({ root: folder.path });
  const files = await stored(blobs, { 'adapter_model.safetensors': 'weights '.repeat(4_000_000) });
  const options = { blobs, workspaceId, files, texts, atMs };
  const reader = (await openTar(options)).stream.getReader();
  expect((await reader.read()).value?.length).toBeGreaterThan(0);
  await reader.cancel();
  const again = new FileBlobStore({ root: folder.path });
  const { hash } = files[0]!;
  const [found] = await pathsOf(folder.path, hash);
  await writeFile(found!, 'weights');
  expect(await rejection(openTar({ ...options, blobs: again }))).toMatchObject({ code: 'blob_damaged' });
});

async function pathsOf(root: string, hash: string): Promise<string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && entry.name.includes(hash))
    .map((entry) => join(entry.parentPath, entry.name));
}
