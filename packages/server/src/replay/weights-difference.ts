/** How the files of two saved versions differ: array by array where they hold weights. */
import { readSafetensors } from '@loopwright/engine';
import type { Manifest, ManifestEntry } from '../blobs/blob-store.js';
import { distance } from './differences.js';

export interface ArrayDifference {
  readonly file: string;
  readonly array: string;
  /** Values whose bits differ. */
  readonly count: number;
  readonly of: number;
  /** Largest |a − b|. */
  readonly largest: number;
  /** The same over the largest magnitude in the array. */
  readonly relative: number;
}

export interface WeightsDifference {
  /** Files that differ, or that one side lacks. */
  readonly files: readonly string[];
  /** Arrays that differ, the largest difference first. */
  readonly arrays: readonly ArrayDifference[];
  /** In the files that were compared. */
  readonly arraysCompared: number;
}

/** The files of a version, and where to read one. */
export interface VersionFiles {
  readonly manifest: Manifest;
  readonly open: (entry: ManifestEntry) => Promise<string>;
}

/** Undefined when all files have the same content. */
export async function weightsDifference(a: VersionFiles, b: VersionFiles): Promise<WeightsDifference | undefined> {
  const [left, right] = [a, b].map(({ manifest }) => new Map(manifest.map((entry) => [entry.path, entry])));
  const paths = [...new Set([...left!.keys(), ...right!.keys()])].sort();
  const files = paths.filter((path) => left!.get(path)?.hash !== right!.get(path)?.hash);
  if (files.length === 0) return undefined;
  const arrays: ArrayDifference[] = [];
  let arraysCompared = 0;
  for (const file of files) {
    const [x, y] = [left!.get(file), right!.get(file)];
    if (x === undefined || y === undefined || !file.endsWith('.safetensors')) continue;
    const [one, other] = [await readSafetensors(await a.open(x)), await readSafetensors(await b.open(y))];
    arraysCompared += one.size;
    for (const [array, { data }] of one) {
      const found = other.get(array)?.data;
      if (found === undefined || found.length !== data.length) continue; // another shape: the file is told
      const { count, largest } = distance(data, found);
      if (count === 0) continue;
      const magnitude = data.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
      arrays.push({
        file,
        array,
        count,
        of: data.length,
        largest,
        relative: magnitude === 0 ? 1 : largest / magnitude,
      });
    }
  }
  return { files, arrays: arrays.sort((p, q) => q.largest - p.largest), arraysCompared };
}
