/** `loopwright export`: saved weights or a base model as files that other tools read. */
import { readdir } from 'node:fs/promises';
import { basename, extname, resolve } from 'node:path';
import {
  type GgufType,
  type ModelSource,
  mergeAdapter,
  openModel,
  readAdapter,
  writeAdapter,
  writeGguf,
  writeModelDirectory,
} from '@loopwright/engine';
import { complaint, splitPinned } from '@loopwright/protocol';
import { listenForInterrupt } from '../../interrupt.js';
import type { CommandContext } from '../context.js';
import { StatusLine } from '../status-line.js';
import { bytesText } from '../text.js';
import type { ExportFormat } from './settings.js';
import { type ExportSource, findSource } from './source.js';

export interface ExportOptions {
  readonly format: ExportFormat;
  readonly type: GgufType;
  readonly base?: string;
  readonly data?: string;
  readonly maxShard: number;
}

/** @throws `invalid_argument` for a target that is there already, or not fit for the format; what reading and writing throw */
export async function exportCommand(
  { model, target }: { readonly model: string; readonly target: string },
  options: ExportOptions,
  context: CommandContext,
): Promise<void> {
  const { console } = context;
  const { format } = options;
  const out = resolve(target);
  await requireFitTarget(out, format);
  using interrupt = listenForInterrupt({ onInterrupt: () => console.note('Stopping; nothing half-written stays.') });
  using status = new StatusLine(console);
  const { signal } = interrupt;
  await using source = await findSource(model, { base: options.base, dataDir: options.data, format, context });
  const name = nameOf(source);
  if (format === 'peft') {
    const files = await writePeft(source, { directory: out, signal });
    tell({ format, out, files }, console);
    return;
  }
  await using base = await openModel(source.base, { signal });
  const whole = source.adapter === undefined ? base : mergeAdapter(base, await readAdapter(source.adapter, { signal }));
  const read = watched(whole, (done) => {
    const percent = Math.round(100 * done);
    status.show({ event: { type: 'export-progress', done }, text: `Writing ${basename(out)}: ${percent} %` });
  });
  if (format === 'merged') {
    const files = await writeModelDirectory(out, read, { maxShardBytes: options.maxShard, signal });
    status.clear();
    tell({ format, out, files }, console);
    return;
  }
  const written = await writeGguf(out, read, { type: options.type, name, signal });
  status.clear();
  console.event({ type: 'export-end', format, path: out, ggufType: options.type, ...written });
  console.table([
    ['file', out],
    ['size', bytesText(written.sizeBytes)],
    ['context', `${written.contextLength} tokens`],
    ['tokenizer', written.hasTokenizer ? 'inside, with the chat template' : 'none: the model has no tokenizer.json'],
  ]);
}

async function writePeft(
  source: ExportSource,
  { directory, signal }: { readonly directory: string; readonly signal: AbortSignal },
): Promise<readonly string[]> {
  if (source.adapter === undefined) {
    throw complaint({
      field: 'format',
      expected: 'an adapter for peft',
      got: 'a whole model',
      remedy: 'export it as merged or gguf',
    });
  }
  return writeAdapter(directory, await readAdapter(source.adapter, { signal }), { baseModel: source.baseName, signal });
}

/** The same model, which tells what share of its tensors was read. */
function watched(model: ModelSource, onRead: (done: number) => void): ModelSource {
  let count = 0;
  return {
    directory: model.directory,
    config: model.config,
    rawConfig: model.rawConfig,
    specs: model.specs,
    sources: model.sources,
    files: model.files,
    read: async (name, options) => {
      onRead(count++ / model.specs.length);
      return model.read(name, options);
    },
    [Symbol.asyncDispose]: () => model[Symbol.asyncDispose](),
  };
}

/** What the exported model is called: its base, and that it was trained. */
function nameOf({ baseName, isTuned }: ExportSource): string {
  const name = basename(splitPinned(baseName).repository).replace(/\.gguf$/, '');
  return isTuned ? `${name} (tuned)` : name;
}

function tell(
  { format, out, files }: { readonly format: string; readonly out: string; readonly files: readonly string[] },
  console: CommandContext['console'],
): void {
  console.event({ type: 'export-end', format, path: out, files });
  console.table([
    ['directory', out],
    ['files', files.join(', ')],
  ]);
}

async function requireFitTarget(path: string, format: ExportOptions['format']): Promise<void> {
  const isFile = format === 'gguf';
  if (isFile && extname(path) !== '.gguf') {
    throw complaint({ field: 'target', expected: 'a file name that ends with .gguf', got: basename(path) });
  }
  const found = await readdir(path).then(
    (names) => (names.length === 0 && !isFile ? undefined : `a directory with ${names.length} entries`),
    (error: unknown) => (codeOf(error) === 'ENOENT' ? undefined : 'a file'),
  );
  if (found === undefined) return;
  throw complaint({
    field: 'target',
    expected: isFile ? 'a file that is not there yet' : 'a new or empty directory',
    got: found,
    remedy: 'name another, or remove it first',
  });
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
