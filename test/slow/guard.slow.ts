/** Ten runs without a fault raise no alarm above a note. */
import { join } from 'node:path';
import { temporaryDirectory } from '@loopwright/testkit';
import { connect } from 'loopwright';
import { expect, test } from 'vitest';
import { cleanRuns, runClean } from '../guard/clean.js';

test('ten clean runs of every kind of loop raise nothing above a note', { timeout: 1_800_000 }, async () => {
  await using folder = await temporaryDirectory();
  await using service = await connect({ dataDir: join(folder.path, 'data') });
  for (const run of cleanRuns) {
    const { alarms } = await runClean(run, { service, steps: 20 });
    const grave = alarms.filter(({ level }) => level !== 'note').map(({ name, step, seen }) => ({ name, step, seen }));
    expect({ run: run.name, grave }).toEqual({ run: run.name, grave: [] });
  }
});
