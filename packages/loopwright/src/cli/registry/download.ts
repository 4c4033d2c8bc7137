/** `loopwright registry download`: the files of a version as a directory or one zip, verified, whole or not at all. */
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { RegistryClient, VersionPart } from '@loopwright/client';
import { asLoopwrightError, complaint, diskFull, isNoSpace, LoopwrightError } from '@loopwright/protocol';
import { listenForInterrupt } from '../../interrupt.js';
import type { CommandContext } from '../context.js';
import { isThere } from '../model-path.js';
import { type ServerAddress, serviceOf } from '../sessions.js';
import { StatusLine } from '../status-line.js';
import { bytesText } from '../text.js';
import { atServer } from './at-server.js';
import { nameOf } from './list.js';

export interface DownloadOptions extends ServerAddress {
  readonly part: VersionPart;
  readonly zip?: boolean;
}

/** @throws `invalid_argument` for a target that is there already; `unknown_version`; `blob_damaged`, also for what arrives otherwise than it was stored */
export async function downloadCommand(
  { version, target }: { readonly version: string; readonly target: string },
  { part, zip = false, ...address }: DownloadOptions,
  context: CommandContext,
): Promise<void> {
  const { console } = context;
  const out = resolve(target);
  await requireFree(out);
  using interrupt = listenForInterrupt({ onInterrupt: () => console.note('Stopping; nothing half-written stays.') });
  using status = new StatusLine(console);
  const { signal } = interrupt;
  const { registry } = serviceOf(address, context);
  const detail = await atServer(address, context, (service) => service.registry.get(version, { signal }));
  let done = 0;
  const onBytes = (count: number) => {
    done += count;
    status.show({
      event: { type: 'download-progress', sizeBytes: done },
      text: `Downloading ${nameOf(detail)}: ${bytesText(done)}`,
    });
  };
  const temporary = join(dirname(out), `.${basename(out)}.${randomUUID()}.tmp`);
  let files: readonly string[];
  try {
    if (zip) {
      await writeStream(registry.archive(version, { part, signal }), { path: temporary, onBytes });
      files = [basename(out)];
    } else {
      files = await writeDirectory(registry, {
        version,
        part,
        files: detail.files,
        directory: temporary,
        onBytes,
        signal,
      });
    }
    await rename(temporary, out);
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    throw asWriteError(error);
  }
  status.clear();
  console.event({ type: 'download-end', version: detail.id, path: out, sizeBytes: done, files });
  console.table([
    [zip ? 'file' : 'directory', out],
    ['size', bytesText(done)],
    ...(zip ? [] : [['files', files.join(', ')] as const]),
  ]);
}

interface DirectoryOptions {
  readonly version: string;
  readonly part: VersionPart;
  readonly files: readonly { readonly path: string; readonly sha256: string }[];
  readonly directory: string;
  readonly onBytes: (count: number) => void;
  readonly signal: AbortSignal;
}

async function writeDirectory(registry: RegistryClient, options: DirectoryOptions): Promise<string[]> {
  const { version, part, files, directory, onBytes, signal } = options;
  await mkdir(directory, { recursive: true });
  const chosen = files.flatMap((file) => {
    const name = nameIn(part, file.path);
    return name === undefined ? [] : [{ ...file, name }];
  });
  if (chosen.length === 0) {
    const expected = files.length === 0 ? 'a version whose files are there' : `a version with the part ${part}`;
    throw complaint({
      field: files.length === 0 ? 'version' : 'part',
      expected,
      got: files.length === 0 ? 'one whose files are gone' : 'one without',
      remedy: part === 'merged' ? 'merge it on this machine: loopwright export' : 'see loopwright registry show',
    });
  }
  await writeFile(join(directory, 'README.md'), await registry.card(version, { signal }));
  for (const { path, sha256, name } of chosen) {
    const to = join(directory, checkedName(name));
    await mkdir(dirname(to), { recursive: true });
    const digest = await writeStream(registry.file(version, path, { signal }), { path: to, onBytes });
    if (digest === sha256) continue;
    throw new LoopwrightError({
      code: 'blob_damaged',
      message: `${name} arrived with other bytes than were stored; download it again`,
      details: { field: name, expected: sha256, got: digest, remedy: 'download it again' },
    });
  }
  return ['README.md', ...chosen.map(({ name }) => name)];
}

/** What a file is called in a part; undefined where it is not of it. */
function nameIn(part: VersionPart, path: string): string | undefined {
  if (part === 'adapter') return path.startsWith('adapter_') ? path : undefined;
  if (part === 'all') return path;
  return path.startsWith('merged/') ? path.slice('merged/'.length) : undefined;
}

/** The server is believed in what it holds, not in where this machine writes. */
function checkedName(name: string): string {
  const steps = name.split('/');
  if (!/[\\:]/.test(name) && steps.every((step) => step !== '' && step !== '.' && step !== '..')) return join(...steps);
  throw complaint({ field: 'files', expected: 'paths inside the directory', got: `one of ${name.length} characters` });
}

/** Writes and syncs a new file. @returns its SHA-256 */
async function writeStream(
  stream: AsyncIterable<Uint8Array>,
  { path, onBytes }: { readonly path: string; readonly onBytes: (count: number) => void },
): Promise<string> {
  const digest = createHash('sha256');
  const file = await open(path, 'wx');
  try {
    for await (const bytes of stream) {
      await file.writeFile(bytes);
      digest.update(bytes);
      onBytes(bytes.byteLength);
    }
    await file.sync();
  } finally {
    await file.close();
  }
  return digest.digest('hex');
}

async function requireFree(path: string): Promise<void> {
  if (!(await isThere(path))) return;
  throw complaint({
    field: 'target',
    expected: 'a name that is not there yet',
    got: 'one that is',
    remedy: 'name another, or remove it first',
  });
}

function asWriteError(error: unknown): LoopwrightError {
  const code =
    error instanceof Error && 'code' in error && !LoopwrightError.isInstance(error) ? String(error.code) : undefined;
  if (isNoSpace(code)) return diskFull({ field: 'target', got: code, cause: error });
  if (code === undefined) return asLoopwrightError(error);
  return complaint({ field: 'target', expected: 'a place that can be written', got: code, cause: error });
}
