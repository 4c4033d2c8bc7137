/** Which files of a repository a model needs: not its other formats, pictures and papers. */
import { complaint } from '@loopwright/protocol';
import type { RepositoryFile, RepositoryInfo } from './hub-client.js';
import { singleWeightsFile, weightsIndexFile } from './snapshot.js';

/** All in the top folder. */
const configFiles = /^(config|generation_config|special_tokens_map|added_tokens|vocab)\.json$|^merges\.txt$/;
const textFiles = /^tokenizer[\w.-]*$|^chat_template\.(jinja|json)$/;

export interface NeededFiles {
  /** Config, tokenizer, templates. */
  readonly small: readonly RepositoryFile[];
  /** One file, or the index of several, which are known when it has been read. */
  readonly weights: { readonly type: 'single' | 'index'; readonly file: RepositoryFile };
}

/** @throws `model_invalid` when there is no config, or no safetensors weights */
export function neededFiles({ repository, files }: RepositoryInfo): NeededFiles {
  const named = (name: string) => files.find(({ path }) => path === name);
  if (named('config.json') === undefined) throw lacking(repository, 'config.json', files);
  const small = files.filter(({ path }) => configFiles.test(path) || textFiles.test(path));
  // With both there, the single file is what is loaded.
  const single = named(singleWeightsFile);
  if (single !== undefined) return { small, weights: { type: 'single', file: single } };
  const index = named(weightsIndexFile);
  if (index === undefined) throw lacking(repository, 'safetensors weights', files);
  return { small, weights: { type: 'index', file: index } };
}

/** The weight files that an index names. @throws `model_invalid` when one isn't in the repository */
export function shardFiles({ repository, files }: RepositoryInfo, names: readonly string[]): RepositoryFile[] {
  return names.map((name) => {
    const file = files.find(({ path }) => path === name);
    if (file === undefined) throw lacking(repository, name, files);
    return file;
  });
}

function lacking(repository: string, what: string, files: readonly RepositoryFile[]) {
  const endings = [...new Set(files.map(({ path }) => /\.(gguf|bin|pt|pth|onnx|h5|msgpack)$/.exec(path)?.[1]))];
  const others = endings.filter((ending) => ending !== undefined);
  const remedy = others.includes('gguf')
    ? 'choose a repository with safetensors weights, or download the GGUF file and name it by its absolute path'
    : 'choose a repository with safetensors weights';
  return complaint({
    code: 'model_invalid',
    field: repository,
    expected: what,
    got: others.length === 0 ? `none among ${files.length} files` : `none, but ${others.join(', ')} files`,
    remedy,
  });
}
