/** Where an interrupted run goes on: a small file beside the data directory of its server. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import type { PretrainingSettings } from './settings.js';

export interface Progress {
  readonly settings: PretrainingSettings;
  readonly doneSteps: number;
  /** The saved state: weights and optimizer. */
  readonly modelPackageArn: string;
}

/** The progress of a run with the same settings; undefined where there is none, so that changed settings start anew. */
export async function readProgress(file: string, settings: PretrainingSettings): Promise<Progress | undefined> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch {
    return undefined; // nothing was interrupted
  }
  const progress = JSON.parse(text) as Progress; // true: written by writeProgress
  return isDeepStrictEqual(progress.settings, settings) ? progress : undefined;
}

export async function writeProgress(file: string, progress: Progress): Promise<void> {
  await writeFile(file, `${JSON.stringify(progress, null, 2)}\n`);
}

export async function clearProgress(file: string): Promise<void> {
  await rm(file, { force: true });
}
