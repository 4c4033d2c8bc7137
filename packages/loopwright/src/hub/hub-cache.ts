/** The cache of downloaded models, in the layout that Hugging Face's tools share: blobs, refs and snapshots of each repository. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pinnedName } from '@loopwright/protocol';
import type { InstalledModel, ModelCache } from '@loopwright/server';
import { isCommit, parseHubName } from './hub-name.js';
import { modelKind, type RepositoryKind } from './repository-kind.js';
import { isLanguageModel, missingFile } from './snapshot.js';

export class HubCache implements ModelCache {
  readonly directory: string;

  /** @param directory need not exist */
  constructor(directory: string) {
    this.directory = directory;
  }

  /** The folder of a repository. */
  repository(name: string): string {
    return repositoryFolder(this.directory, { kind: modelKind, name });
  }

  snapshot({ repository, commit }: { readonly repository: string; readonly commit: string }): string {
    return join(this.repository(repository), 'snapshots', commit);
  }

  /** The model of `org/name` or `org/name@revision`, with `org/name@commit` as its id. Nothing is asked of the hub. */
  async find(name: string): Promise<InstalledModel | undefined> {
    const parsed = parseHubName(name);
    const commit =
      parsed === undefined ? undefined : await commitOf(this.repository(parsed.repository), parsed.revision);
    if (parsed === undefined || commit === undefined) return undefined;
    const { repository } = parsed;
    const directory = this.snapshot({ repository, commit });
    return (await missingFile(directory)) === undefined
      ? { id: pinnedName({ repository, commit }), directory }
      : undefined;
  }

  /** Language models that are whole: by their plain names, or with commit where there is no `main` of them. */
  async list(): Promise<readonly InstalledModel[]> {
    const folders = (await namesIn(this.directory)).flatMap((folder) => {
      const [type, org, name, ...rest] = folder.split('--');
      const repository = `${org}/${name}`;
      const isModel = type === 'models' && rest.length === 0 && parseHubName(repository) !== undefined;
      return isModel ? [repository] : [];
    });
    return (await Promise.all(folders.map((repository) => this.#modelsOf(repository)))).flat();
  }

  remedy(name: string): string | undefined {
    return parseHubName(name) === undefined
      ? undefined
      : `run \`loopwright models pull ${name}\` where the server runs`;
  }

  async #modelsOf(repository: string): Promise<InstalledModel[]> {
    const main = await this.find(repository);
    if (main !== undefined) {
      return (await isLanguageModel(main.directory)) ? [{ id: repository, directory: main.directory }] : [];
    }
    const commits = (await namesIn(join(this.repository(repository), 'snapshots'))).filter(isCommit);
    const found = await Promise.all(commits.map((commit) => this.find(pinnedName({ repository, commit }))));
    const whole = found.filter((model) => model !== undefined);
    const isListed = await Promise.all(whole.map(({ directory }) => isLanguageModel(directory)));
    return whole.filter((_, i) => isListed[i]);
  }
}

/** Where a repository lies in the cache. */
export function repositoryFolder(
  cacheDirectory: string,
  { kind, name }: { readonly kind: RepositoryKind; readonly name: string },
): string {
  return join(cacheDirectory, `${kind.plural}--${name.replace('/', '--')}`);
}

/** What a revision means in the cache; undefined where nothing says so. @param folder of the repository */
export async function commitOf(folder: string, revision: string): Promise<string | undefined> {
  if (isCommit(revision)) return revision;
  const ref = await readFile(join(folder, 'refs', revision), 'utf8').catch(() => '');
  return isCommit(ref.trim()) ? ref.trim() : undefined;
}

/** Sorted; none of a folder that isn't there. */
async function namesIn(folder: string): Promise<string[]> {
  return (await readdir(folder).catch(() => [])).sort();
}
