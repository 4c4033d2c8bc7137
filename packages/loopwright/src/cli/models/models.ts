/** `loopwright models`: base models, and the versions that runs saved. */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { openModelFiles } from '@loopwright/engine';
import { LoopwrightError } from '@loopwright/protocol';
import type { InstalledModel } from '@loopwright/server';
import { connect } from '../../connect.js';
import { dataDirsIn } from '../../data-dirs.js';
import { HubCache } from '../../hub/hub-cache.js';
import { installedModels } from '../../models.js';
import type { CommandContext } from '../context.js';
import { type ServerAddress, serviceOf } from '../sessions.js';
import { bytesText, formatTable, timeText } from '../text.js';

export interface ModelsOptions extends ServerAddress {
  readonly saved?: boolean;
}

export async function models({ saved = false, ...address }: ModelsOptions, context: CommandContext): Promise<void> {
  if (address.url !== undefined) await (saved ? savedOnServer(address, context) : modelsOfServer(address, context));
  else await (saved ? savedHere(context) : modelsHere(context));
}

async function modelsHere({ console, settings }: CommandContext): Promise<void> {
  const installed = await installedModels({ folders: settings.modelFolders });
  const ids = new Set(installed.map(({ id }) => id));
  const pulled = (await new HubCache(settings.hub.cacheDirectory).list()).filter(({ id }) => !ids.has(id));
  const found = await Promise.all([...installed, ...pulled].map(describeModel));
  for (const model of found) console.event({ type: 'model', ...model });
  const rows = found.map((model) => [
    model.id,
    model.architecture ?? '?',
    model.contextLength === undefined ? '?' : String(model.contextLength),
    model.weightsBytes === undefined ? '?' : bytesText(model.weightsBytes),
    model.directory,
  ]);
  for (const line of formatTable(['model', 'kind', 'context', 'weights', 'directory'], rows)) console.line(line);
  console.line();
  console.line('Further models: loopwright models pull org/name fetches one of the model hub.');
  console.line(`Or put directories or GGUF files into ${settings.modelFolders.join(' or ')}, or name one by its path.`);
}

interface DescribedModel extends InstalledModel {
  readonly architecture?: string;
  readonly contextLength?: number;
  readonly weightsBytes?: number;
}

/** What its files say; what they don't is left out, and comes out when the model is loaded. */
async function describeModel({ id, directory }: InstalledModel): Promise<DescribedModel> {
  const config = await readConfig(directory);
  const index = await readJson(join(directory, 'model.safetensors.index.json'));
  const total = (index.metadata as { total_size?: unknown } | undefined)?.total_size;
  const single = await stat(directory.endsWith('.gguf') ? directory : join(directory, 'model.safetensors')).catch(
    () => undefined,
  );
  const weightsBytes = typeof total === 'number' ? total : single?.size;
  return {
    id,
    directory,
    ...(typeof config.model_type === 'string' ? { architecture: config.model_type } : {}),
    ...(typeof config.max_position_embeddings === 'number' ? { contextLength: config.max_position_embeddings } : {}),
    ...(weightsBytes === undefined ? {} : { weightsBytes }),
  };
}

/** The config of a model; empty where there is none to read. */
async function readConfig(directory: string): Promise<Record<string, unknown>> {
  try {
    const bytes = await (await openModelFiles(directory)).read('config.json');
    return bytes === undefined ? {} : objectIn(new TextDecoder().decode(bytes));
  } catch {
    return {};
  }
}

/** The object in a file; empty where there is none to read. */
async function readJson(path: string): Promise<Record<string, unknown>> {
  try {
    return objectIn(await readFile(path, 'utf8'));
  } catch {
    return {};
  }
}

function objectIn(json: string): Record<string, unknown> {
  const value: unknown = JSON.parse(json);
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}; // true: any object can be read so
}

async function modelsOfServer(address: ServerAddress, context: CommandContext): Promise<void> {
  for (const id of await serviceOf(address, context).listBaseModels()) {
    context.console.event({ type: 'model', id });
    context.console.line(id);
  }
}

interface SavedVersionRow {
  readonly description: string;
  readonly kind: string;
  readonly createdAtMs: number;
  readonly modelPackageArn: string;
  readonly dataDir?: string;
  readonly directory?: string;
}

/** The versions of every data directory of the home folder that no other process works on. */
async function savedHere({ console, settings }: CommandContext): Promise<void> {
  const found: SavedVersionRow[] = [];
  for (const dataDir of await dataDirsIn(settings.home)) {
    try {
      await using service = await connect({ dataDir });
      for (const version of await service.listModelPackages()) {
        const directory = await service.versionDirectory(version.modelPackageArn);
        found.push({ ...version, dataDir, ...(directory === undefined ? {} : { directory }) });
      }
    } catch (error) {
      if (!LoopwrightError.isInstance(error) || error.code !== 'data_dir_in_use') throw error;
      console.note(`${dataDir} is in use by a running process; its versions are left out (ask a server by --url).`);
    }
  }
  showSaved(found, console);
}

async function savedOnServer(address: ServerAddress, context: CommandContext): Promise<void> {
  showSaved(await serviceOf(address, context).listModelPackages(), context.console);
}

/** Weights without a description were saved by a loop for its next samples; they expire, and are counted only. */
function showSaved(all: readonly SavedVersionRow[], console: CommandContext['console']): void {
  const versions = all.filter(({ kind, description }) => kind === 'state' || description !== '');
  const others = all.length - versions.length;
  for (const version of versions) console.event({ type: 'version', ...version });
  if (versions.length === 0) console.line('No saved versions.');
  for (const { description, kind, createdAtMs, modelPackageArn, directory, dataDir } of versions) {
    console.line(
      `${console.paint.bold(description === '' ? '(no description)' : description)}  ${kind}, ${timeText(createdAtMs)}`,
    );
    console.table([
      ['arn', modelPackageArn],
      ...(directory === undefined ? [] : [['files', directory] as const]),
      ...(dataDir === undefined ? [] : [['data', dataDir] as const]),
    ]);
  }
  if (others > 0)
    console.line(`And ${others} without a description, made by loops for their next samples; they expire.`);
}
