/** Which files of a version go out: all, the adapter alone, or the merged model as a directory of its own. */
import { complaint } from '@loopwright/protocol';
import type { VersionPart } from '@loopwright/wires/loopwright';
import type { Manifest, ManifestEntry } from '../blobs/blob-store.js';

/** A stored file and the name that it goes out under. */
export interface OutgoingFile extends ManifestEntry {
  readonly name: string;
}

const mergedFolder = 'merged/';

/** @throws `invalid_argument` when the version has no such part */
export function outgoingFiles(files: Manifest, part: VersionPart): OutgoingFile[] {
  switch (part) {
    case 'all':
      return files.map((file) => ({ ...file, name: file.path }));
    case 'adapter':
      return found(
        files.filter(({ path }) => path.startsWith('adapter_')).map((file) => ({ ...file, name: file.path })),
        'a version of an adapter',
        'leave the part out: this version is a whole model',
      );
    case 'merged':
      return found(
        files
          .filter(({ path }) => path.startsWith(mergedFolder))
          .map((file) => ({ ...file, name: file.path.slice(mergedFolder.length) })),
        'a version that was saved with its merged model',
        'save it with mergeWeights, or merge it here: loopwright export',
      );
    default:
      return part satisfies never;
  }
}

function found(files: OutgoingFile[], expected: string, remedy: string): OutgoingFile[] {
  if (files.length > 0) return files;
  throw complaint({ field: 'part', expected, got: 'one without', remedy });
}
