/** `loopwright report`: a run as one HTML file. */
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { readRun, readSignOffs } from '@loopwright/loops/node';
import { complaint } from '@loopwright/protocol';
import type { CommandContext } from '../context.js';
import { tellDamage } from '../runs/damage.js';
import { comparedSamples, markedSamples } from '../samples/compared-samples.js';
import { page } from './page.js';

export interface ReportOptions {
  readonly out?: string;
}

export async function reportCommand(
  folder: string,
  { out }: ReportOptions,
  { console }: CommandContext,
): Promise<void> {
  const run = await readRun(folder);
  const problems = await comparedSamples(run.folder, { problems: 20, columns: 4 });
  const marked = await markedSamples(run.folder);
  const signOffs = await readSignOffs(run.folder);
  const path = resolve(out ?? join(run.folder, 'report.html'));
  try {
    await writeFile(path, page(run, { problems, marked, signOffs }));
  } catch (cause) {
    throw complaint({
      field: 'out',
      expected: 'a file that can be written',
      got: path,
      remedy: 'name another with --out',
      cause,
    });
  }
  await tellDamage(run, console);
  console.event({ type: 'report', path });
  console.line(`Wrote ${path}; open it in a browser. It holds samples.`);
}
