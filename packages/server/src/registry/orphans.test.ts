import { mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FileBlobStore } from '../blobs/file-blob-store.js';
import { saveState } from '../testing/operations.js';
import { openTestServer } from '../testing/test-server.js';

test('what a crash left between a file and its row goes after the next start; what has a row, or is young, stays', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'loopwright-orphans-'));
  const root = join(dataDir, 'blobs');
  const blobs = new FileBlobStore({ root });
  const names = () => readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const age = async () => {
    for (const { parentPath, name } of names()) await utimes(join(parentPath, name), 0, 0);
  };
  try {
    const first = await openTestServer({ dataDir, blobs });
    await first.createSession('a');
    const { body } = await first.submit('a', 1, saveState);
    expect((await first.result('a', String(body.operationId))).status).toBe('Completed');
    await first.close();
    const kept = names().map(({ name }) => name);
    expect(kept.length).toBeGreaterThan(0);

    const orphan = await blobs.put('default', new TextEncoder().encode('of nobody'));
    writeFileSync(join(root, 'default', orphan.slice(0, 2), 'half.tmp'), 'half');
    await age();
    const young = await blobs.put('default', new TextEncoder().encode('about to be named'));
    const second = await openTestServer({ dataDir, blobs });
    await second.sweep();
    await second.close();
    expect(
      names()
        .map(({ name }) => name)
        .sort(),
    ).toEqual([...kept, young].sort());
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
});
