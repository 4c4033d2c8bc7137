import * as nodeSyncFiles from 'node:fs';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import * as nodeFiles from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FileBlobStore, type FileOperations } from './file-blob-store.js';

const fresh = () => mkdtempSync(join(tmpdir(), 'loopwright-blobs-'));
const bytes = (text: string) => new TextEncoder().encode(text);
const filesUnder = (root: string) =>
  readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
const full = () => Object.assign(new Error('no space'), { code: 'ENOSPC' });

describe('FileBlobStore', () => {
  it('gives back what was put, and stores the same bytes once', async () => {
    const root = fresh();
    const store = new FileBlobStore({ root });
    const hash = await store.put('w', bytes('abc'));
    expect(await store.put('w', bytes('abc'))).toBe(hash);
    expect(hash).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
    expect(new TextDecoder().decode(await store.get({ workspaceId: 'w', hash }))).toBe('abc');
    expect(filesUnder(root)).toHaveLength(1);
  });

  it('keeps workspaces apart', async () => {
    const store = new FileBlobStore({ root: fresh() });
    const hash = await store.put('one', bytes('abc'));
    await expect(store.get({ workspaceId: 'two', hash })).rejects.toMatchObject({ code: 'blob_damaged' });
  });

  it('tells a blob that can’t be read now from one that is missing', async () => {
    const root = fresh();
    const hash = await new FileBlobStore({ root }).put('w', bytes('abc'));
    const tooMany = () => Promise.reject(Object.assign(new Error('too many open files'), { code: 'EMFILE' }));
    const store = new FileBlobStore({ root, files: { ...nodeFiles, readFile: tooMany } });
    await expect(store.get({ workspaceId: 'w', hash })).rejects.toMatchObject({
      code: 'internal',
      message: 'file storage failed: EMFILE',
    });
  });

  it('notices bytes that were changed from outside', async () => {
    const root = fresh();
    const hash = await new FileBlobStore({ root }).put('w', bytes('abc'));
    const store = new FileBlobStore({ root });
    const path = join(root, 'w', hash.slice(0, 2), hash);
    await nodeFiles.chmod(path, 0o644);
    writeFileSync(path, 'abd');
    await expect(store.get({ workspaceId: 'w', hash })).rejects.toThrow('holds other bytes');
    await expect(store.materialize('w', [{ path: 'a', hash, sizeBytes: 3 }], join(root, 'out'))).rejects.toThrow(
      'holds other bytes',
    );
    expect(readdirSync(root)).toEqual(['w']);
  });

  it('never shows a half-written blob: it is synced under another name first', async () => {
    const root = fresh();
    const seen: string[][] = [];
    const files: FileOperations = {
      ...nodeFiles,
      rename: async (from, to) => {
        seen.push(filesUnder(root).map((entry) => entry.name.replace(/^[0-9a-f]{64}\.[0-9a-f-]+/, 'blob')));
        await nodeFiles.rename(from, to);
      },
    };
    await new FileBlobStore({ root, files }).put('w', bytes('abc'));
    expect(seen).toEqual([['blob.tmp']]);
  });

  it('without syncs writes small blobs under another name first too, and leaves nothing behind when the disk is full', async () => {
    const root = fresh();
    const seen: string[][] = [];
    const watched = {
      ...nodeSyncFiles,
      renameSync: (from: nodeSyncFiles.PathLike, to: nodeSyncFiles.PathLike) => {
        seen.push(filesUnder(root).map((entry) => entry.name.replace(/^[0-9a-f]{64}\.[0-9a-f-]+/, 'blob')));
        nodeSyncFiles.renameSync(from, to);
      },
    };
    const store = new FileBlobStore({ root, smallFiles: watched, durability: 'process-crash' });
    const hash = await store.put('w', bytes('abc'));
    expect(seen).toEqual([['blob.tmp']]);
    expect(filesUnder(root).map(({ name }) => name)).toEqual([hash]);
    const failing = {
      ...nodeSyncFiles,
      renameSync: () => {
        throw full();
      },
    };
    const broken = new FileBlobStore({ root, smallFiles: failing, durability: 'process-crash' });
    await expect(broken.put('w', bytes('abcd'))).rejects.toMatchObject({ code: 'disk_full' });
    expect(filesUnder(root).map(({ name }) => name)).toEqual([hash]);
  });

  it.each(['open', 'rename'] as const)(
    'reports a full disk at %s as disk_full and leaves nothing behind',
    async (step) => {
      const root = fresh();
      const files: FileOperations = { ...nodeFiles, [step]: () => Promise.reject(full()) };
      await expect(new FileBlobStore({ root, files }).put('w', bytes('abc'))).rejects.toMatchObject({
        code: 'disk_full',
      });
      expect(filesUnder(root)).toEqual([]);
      await new FileBlobStore({ root }).put('w', bytes('abc'));
      expect(filesUnder(root)).toHaveLength(1);
    },
  );

  it('reports a disk that fills up in mid-write and leaves nothing behind', async () => {
    const root = fresh();
    const files: FileOperations = {
      ...nodeFiles,
      open: async (...args) => {
        const file = await nodeFiles.open(...args);
        file.writeFile = async () => {
          await file.write(bytes('a'));
          throw full();
        };
        return file;
      },
    };
    await expect(new FileBlobStore({ root, files }).put('w', bytes('abc'))).rejects.toMatchObject({
      code: 'disk_full',
    });
    expect(filesUnder(root)).toEqual([]);
  });

  it('takes a directory over and gives it back elsewhere without copying', async () => {
    const root = fresh();
    const store = new FileBlobStore({ root });
    const source = fresh();
    mkdirSync(join(source, 'merged'));
    writeFileSync(join(source, 'a.txt'), 'one');
    writeFileSync(join(source, 'merged', 'b.txt'), 'two');
    const manifest = await store.adopt('w', source, ['merged/b.txt', 'a.txt']);
    expect(manifest.map(({ path, sizeBytes }) => [path, sizeBytes])).toEqual([
      ['a.txt', 3],
      ['merged/b.txt', 3],
    ]);
    const target = join(fresh(), 'out');
    await store.materialize('w', manifest, target);
    expect(readFileSync(join(target, 'merged/b.txt'), 'utf8')).toBe('two');
    expect(statSync(join(target, 'a.txt')).ino).toBe(statSync(join(source, 'a.txt')).ino);
  });

  it('copies where links are not possible', async () => {
    const root = fresh();
    const noLinks = () => Promise.reject(Object.assign(new Error('no links'), { code: 'EXDEV' }));
    const store = new FileBlobStore({ root, files: { ...nodeFiles, link: noLinks } });
    const source = fresh();
    writeFileSync(join(source, 'a.txt'), 'one');
    const target = join(fresh(), 'out');
    await store.materialize('w', await store.adopt('w', source, ['a.txt']), target);
    expect(readFileSync(join(target, 'a.txt'), 'utf8')).toBe('one');
    expect(statSync(join(target, 'a.txt')).ino).not.toBe(statSync(join(source, 'a.txt')).ino);
  });

  it.each(['../a', '/a', '..', ''])('refuses the path %j in a manifest', async (path) => {
    const store = new FileBlobStore({ root: fresh() });
    const hash = await store.put('w', bytes('abc'));
    const target = join(fresh(), 'out');
    await expect(store.materialize('w', [{ path, hash, sizeBytes: 3 }], target)).rejects.toMatchObject({
      code: 'invalid_argument',
    });
  });

  it('finds a laid-out directory that was damaged, and lays it out anew from whole blobs', async () => {
    const noLinks = () => Promise.reject(Object.assign(new Error('no links'), { code: 'EXDEV' }));
    const store = new FileBlobStore({ root: fresh(), files: { ...nodeFiles, link: noLinks } });
    const hash = await store.put('w', bytes('abc'));
    const manifest = [{ path: 'a', hash, sizeBytes: 3 }];
    const target = join(fresh(), 'out');
    await store.materialize('w', manifest, target);
    await nodeFiles.chmod(join(target, 'a'), 0o644);
    writeFileSync(join(target, 'a'), 'abd');
    await store.materialize('w', manifest, target);
    expect(readFileSync(join(target, 'a'), 'utf8')).toBe('abc');
    await nodeFiles.rm(join(target, 'a'));
    await store.materialize('w', manifest, target);
    expect(readFileSync(join(target, 'a'), 'utf8')).toBe('abc');
  });

  it('writes a damaged blob anew when the same bytes are saved again, although the size is right', async () => {
    const root = fresh();
    const store = new FileBlobStore({ root });
    const source = fresh();
    writeFileSync(join(source, 'a'), 'abc');
    const hash = await store.put('w', bytes('abc'));
    const path = join(root, 'w', hash.slice(0, 2), hash);
    await nodeFiles.chmod(path, 0o644);
    writeFileSync(path, 'abd');
    await expect(store.verify({ workspaceId: 'w', hash })).rejects.toMatchObject({ code: 'blob_damaged' });
    await store.adopt('w', source, ['a']);
    await store.verify({ workspaceId: 'w', hash });
  });

  it('gives a blob back that is asked for at the moment of its deletion', async () => {
    const root = fresh();
    const longAgo = new Date(Date.now() - 3_600_000);
    const source = fresh();
    writeFileSync(join(source, 'a'), 'abc');
    let saveAgain = async () => {};
    const files: FileOperations = {
      ...nodeFiles,
      rename: async (from, to) => {
        // Between the look at its age and the deletion.
        if (String(to).endsWith('.tmp')) await saveAgain();
        await nodeFiles.rename(from, to);
      },
    };
    const store = new FileBlobStore({ root, files });
    const hash = await store.put('w', bytes('abc'));
    const path = join(root, 'w', hash.slice(0, 2), hash);
    await nodeFiles.utimes(path, longAgo, longAgo);
    saveAgain = async () => {
      await store.adopt('w', source, ['a']);
    };
    expect(await store.delete({ workspaceId: 'w', hash })).toBe(false);
    await store.verify({ workspaceId: 'w', hash });
    saveAgain = async () => {};
    await nodeFiles.utimes(path, longAgo, longAgo);
    expect(await store.delete({ workspaceId: 'w', hash })).toBe(true);
    expect(filesUnder(root)).toEqual([]);
  });

  it('leaves young blobs alone when asked to delete', async () => {
    const root = fresh();
    const hash = await new FileBlobStore({ root }).put('w', bytes('abc'));
    expect(await new FileBlobStore({ root }).delete({ workspaceId: 'w', hash })).toBe(false);
    expect(await new FileBlobStore({ root, graceMs: 0 }).delete({ workspaceId: 'w', hash })).toBe(true);
    expect(filesUnder(root)).toEqual([]);
  });
});
