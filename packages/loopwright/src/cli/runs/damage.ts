/** Says which lines of a run are missing from what is shown. */
import { counted } from '@loopwright/loops';
import { findDamage, type StoredRun } from '@loopwright/loops/node';
import type { Console } from '../console.js';
import { folderText } from './text.js';

export async function tellDamage(run: StoredRun, console: Console): Promise<void> {
  for (const damaged of await findDamage(run)) {
    const { file, lines, first } = damaged;
    console.event({ type: 'damaged', run: run.folder, ...damaged });
    console.note(
      `${folderText(run)}/${file}: ${counted(lines, 'line')} can’t be read and left out, the first is line ${first}`,
    );
  }
}
