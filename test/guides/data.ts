import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findLeaks, openDataset, rowErrorText } from 'loopwright';

const folder = await mkdtemp(join(tmpdir(), 'guide-'));
process.chdir(folder);
await writeFile(
  'train.jsonl',
  `{"question": "1+1", "answer": "2"}
{"question": "2+3", "answer": null}
{"question": "4+4", "answer": "8"}
{"question": "5+1", "answer":
{"question": "4 + 4", "answer": "8"}
`,
);

const data = await openDataset('train.jsonl', { onReport: () => undefined });
const { format, fields } = await data.format();
console.log(format, fields);

const reading = data.as('rl_prompt').read({ onRowError: 'skip' });
for await (const { prompt, answer, at } of reading) console.log(at.line, prompt, answer);
const { lines, rows, errorCount, errors } = reading.report();
console.log({ lines, rows, errorCount });
for (const error of errors) console.log(rowErrorText(error));

// A seeded order, and where it stands: plain JSON to keep beside a checkpoint.
const whole = data.with({ onRowError: 'skip', onReport: () => undefined });
const order = await whole.shuffled({ seed: 7, epoch: 0 });
for await (const { at } of order) {
  console.log('first:', at.line);
  break;
}
const rest = await whole.shuffled({ seed: 7, epoch: 0, resume: order.position() });
for await (const { at } of rest) console.log('then:', at.line);

// Parts that rows never move between, by their prompts, and a check that nothing is in both.
const { train, test } = whole.split({ parts: { train: 0.5, test: 0.5 } });
const { exact, normalised, prompt } = await findLeaks(train, test);
console.log({ exact, normalised, prompt });

await rm(folder, { recursive: true });
