/** The zip of a version, read by a reader that others wrote. */
import { buffer } from 'node:stream/consumers';
import { temporaryDirectory } from '@loopwright/testkit';
import { expect, it } from 'vitest';
import yauzl from 'yauzl';
import { FileBlobStore } from '../blobs/file-blob-store.js';
import { openArchive } from './archive.js';

/** Names and contents, in the order of the archive. */
function entriesOf(zip: Buffer): Promise<[string, string][]> {
  return new Promise((resolve, reject) => {
    yauzl.fromBuffer(zip, { lazyEntries: true }, (error, file) => {
      if (error !== null) return reject(error);
      const entries: [string, string][] = [];
      file.once('error', reject).once('end', () => resolve(entries));
      file.on('entry', (entry: yauzl.Entry) => {
        file.openReadStream(entry, (failure, stream) => {
          if (failure !== null) return reject(failure);
          buffer(stream).then((content) => {
            entries.push([entry.fileName, content.toString()]);
            file.readEntry();
          }, reject);
        });
      });
      file.readEntry();
    });
  });
}

it('holds the texts and the stored files whole, in folders where their names say so, and is as long as it says', async () => {
  await using folder = await temporaryDirectory();
  const blobs = new FileBlobStore({ root: folder.path });
  const workspaceId = 'default';
  const contents = { 'adapter_model.safetensors': 'weights '.repeat(20_000), 'merged/config.json': '{"é": 1}' };
  const files = await Promise.all(
    Object.entries(contents).map(async ([name, text]) => {
      const bytes = Buffer.from(text);
      return { name, path: name, hash: await blobs.put(workspaceId, bytes), sizeBytes: bytes.length };
    }),
  );
  const texts = { 'README.md': '# A version\n' };
  const archive = await openArchive({ blobs, workspaceId, files, texts, atMs: 1_800_000_000_000 });
  const zip = await buffer(archive.stream);
  expect(zip.length).toBe(archive.sizeBytes);
  expect(await entriesOf(zip)).toEqual([...Object.entries(texts), ...Object.entries(contents)]);
});
