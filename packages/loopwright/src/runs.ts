/** Run folders of programs that use this package: they know its versions, and whether `loopwright runs repeat` started them. */
import { type OpenRunOptions, openRun as open, type Run, withRun as within } from '@loopwright/loops/node';
import { readSettings } from './config.js';

/** What numbers depend on, besides the loops themselves. */
export const countedPackages = ['loopwright', '@loopwright/engine', '@loopwright/server', 'onnxruntime-node'] as const;

/**
 * Opens a run folder: `run.json` (settings, versions, seeds, hashes of the data, commit, command, usage, how it ended), `metrics.jsonl` and `samples.jsonl`.
 * Where the folder is there already, the run goes to `runs/math-2` and so on, unless `resumeAfter` says that it goes on.
 *
 * @throws `invalid_argument` for wrong options, and for changed settings where it is resumed; `run_in_use`; when resumed, `not_found` and `data_invalid`;
 *   write errors
 * @example
 * await using run = await openRun({ folder: 'runs/math', config: { steps: 30 }, seeds: { seed: 1 }, usage: () => service.usage() });
 * await runGrpo({ training, environment, steps: 30, seed: 1, onStep: run.onStep });
 * await run.finish();
 */
export function openRun(options: OpenRunOptions): Promise<Run> {
  return open(withOwn(options));
}

/**
 * Runs `body` with an open run, and ends it by how `body` ended: `done`, `interrupted` (cancelled) or `failed`.
 *
 * @throws what `openRun` and `body` throw
 */
export function withRun<T>(options: OpenRunOptions, body: (run: Run) => Promise<T>): Promise<T> {
  return within(withOwn(options), body);
}

function withOwn(options: OpenRunOptions): OpenRunOptions {
  const { repeatOf } = readSettings();
  return {
    ...(repeatOf === undefined ? {} : { repeatOf }),
    packagesFrom: import.meta.url,
    ...options,
    packages: [...countedPackages, ...(options.packages ?? [])],
  };
}
