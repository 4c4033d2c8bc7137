/** `loopwright runs`: the runs of a folder. */
import { join } from 'node:path';
import { findRuns } from '@loopwright/loops/node';
import { asLoopwrightError } from '@loopwright/protocol';
import type { CommandContext } from '../context.js';
import { isThere } from '../model-path.js';
import { formatTable, timeText } from '../text.js';
import { durationOf, durationText, folderText, headline, lastStep } from './text.js';

export async function listCommand(
  dir: string | undefined,
  _options: object,
  { console, settings }: CommandContext,
): Promise<void> {
  const folder = dir ?? ((await isThere('runs')) ? 'runs' : join(settings.home, 'runs'));
  const { runs, broken } = await findRuns(folder);
  for (const run of runs) {
    const { record, state } = run;
    const { id, name, startedAt, endedAt, usage, cost } = record;
    console.event({
      type: 'run',
      folder: run.folder,
      id,
      name,
      state,
      step: lastStep(run),
      startedAt,
      endedAt,
      usage,
      cost,
      metrics: run.steps.at(-1)?.metrics,
    });
  }
  if (runs.length === 0 && broken.length === 0) {
    console.line(`No runs in ${folder}: openRun in a program makes one, and so does loopwright demo.`);
  }
  if (runs.length > 0) {
    const rows = runs.map((run) => [
      folderText(run),
      run.state,
      String(lastStep(run)),
      headline(run),
      timeText(Date.parse(run.record.startedAt)),
      durationText(durationOf(run)),
    ]);
    for (const line of formatTable(['run', 'state', 'step', 'at that step', 'started', 'took'], rows))
      console.line(line);
  }
  for (const { folder: path, error } of broken) {
    const { code, message } = asLoopwrightError(error);
    console.event({ type: 'broken', folder: path, code, message });
    console.note(`left out: ${message}`);
  }
}
