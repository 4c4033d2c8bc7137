/** Works of data sets: a file that is much larger than what may be in memory. */

import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm, stat, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDataset } from 'loopwright';
import { emit, peakMemoryMb } from './report.js';

const place = { threads: 1, clock: 'wall' } as const;
/** Rows of the shuffled order that are read: each is a read of its own somewhere in the file. */
const shuffledRows = 100_000;

/**
 * A JSONL file of so many GiB of chats, made for this and removed after: all rows in their order, then in a shuffled one. Memory is that of the
 * whole process since its start, so that what one work takes is the difference to the line before.
 */
export async function data(gibibytes: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'loopwright-bench-data-'));
  try {
    const path = join(folder, 'chats.jsonl');
    const bytes = gibibytes * 2 ** 30;
    const { bavail, bsize } = await statfs(folder);
    if (bavail * bsize < bytes * 1.2)
      throw new Error(`${folder}: expected room for ${gibibytes} GiB, and a fifth more`);
    await writeChats(path, bytes);
    const { size } = await stat(path);
    const base = { file_gib: size / 2 ** 30 };
    emit({ work: 'data, nothing read yet', value: peakMemoryMb(), unit: 'MB at most', ...base }, place);

    const set = await openDataset(path);
    const reads = await timedRows(set.as('chat'));
    emit({ work: 'data, in order', value: reads.rows / reads.seconds, unit: 'rows/s', ...base, ...reads }, place);
    const begun = performance.now();
    const order = await set.shuffled({ seed: 1, epoch: 0 });
    const index = { index_seconds: (performance.now() - begun) / 1000 };
    const shuffled = await timedRows(order, shuffledRows);
    emit(
      {
        work: 'data, shuffled',
        value: shuffled.rows / shuffled.seconds,
        unit: 'rows/s',
        ...base,
        ...index,
        ...shuffled,
      },
      place,
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function timedRows(rows: AsyncIterable<unknown>, most = Number.POSITIVE_INFINITY) {
  const begun = performance.now();
  let count = 0;
  for await (const _ of rows) {
    count += 1;
    if (count === most) break;
  }
  return { rows: count, seconds: (performance.now() - begun) / 1000, peak_mb: peakMemoryMb() };
}

/** Rows of some 300 to 3,000 bytes, each another. */
async function writeChats(path: string, bytes: number): Promise<void> {
  const file = createWriteStream(path);
  for (let row = 0, written = 0; written < bytes; row++) {
    const words = Array.from({ length: 20 + ((row * 7919) % 400) }, (_, i) =>
      ((row * 31 + i * 17) % 9973).toString(36),
    );
    const messages = [
      { role: 'user', content: `Question ${row}: ${words.slice(0, 15).join(' ')}?` },
      { role: 'assistant', content: words.join(' ') },
    ];
    const line = `${JSON.stringify({ messages })}\n`;
    written += line.length;
    if (!file.write(line)) await once(file, 'drain');
  }
  file.end();
  await once(file, 'close');
}
