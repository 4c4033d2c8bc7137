/** A saved version of a data directory that no server works on. Nothing in the directory is written, and no session is touched. */
import { arns } from '../routes/runtime-plane.js';
import { defaultWorkspace } from '../workspace.js';
import { openRecordedData } from './recorded-data.js';

export interface SavedVersion extends AsyncDisposable {
  /** The base model as the session recorded it: a path, or a name with the commit that it was pinned to. */
  readonly baseModel: string;
  /** A copy of its files: a PEFT adapter, or a model directory. Removed when this is closed. */
  readonly directory: string;
}

/** @throws `unknown_version` when it never was, was deleted or has expired; `data_dir_in_use`; `invalid_argument` for what is no ARN */
export async function openSavedVersion(dataDir: string, modelPackageArn: string): Promise<SavedVersion> {
  const data = await openRecordedData(dataDir);
  try {
    const version = arns.toVersion(modelPackageArn, 'modelPackageArn');
    const { id, baseModel } = await data.registry.get(defaultWorkspace, version);
    return {
      baseModel,
      directory: await data.registry.directory(defaultWorkspace, id),
      [Symbol.asyncDispose]: () => data[Symbol.asyncDispose](),
    };
  } catch (error) {
    await data[Symbol.asyncDispose]();
    throw error;
  }
}
