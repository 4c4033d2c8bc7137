/**
 * Proves in the real tools that what Loopwright writes and reads is what it says: a few LoRA steps, every export, and the log-probs and
 * greedy texts of transformers, PEFT and llama.cpp beside ours. Needs a Python with `requirements.txt`; nothing is downloaded.
 *
 *   npm run prove:formats -- --model DIR [--python PY] [--fixtures] [--keep DIR]
 *
 * `--model`, repeatable, is a model directory; `--fixtures` adds the tiny models of the tests. Prints a table, and exits with 1 when a row fails.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { tinyModelDirectory, tinyModels } from '@loopwright/testkit';
import { type ModelProofs, type ProveOptions, proveModel } from './prove-model.js';
import { allHold, reportLines } from './report.js';

const { values } = parseArgs({
  options: {
    model: { type: 'string', multiple: true, default: [] },
    python: { type: 'string', default: 'python3' },
    fixtures: { type: 'boolean', default: false },
    /** What is made stays here. */
    keep: { type: 'string' },
  },
});

type Subject = Pick<ProveOptions, 'name' | 'model' | 'steps' | 'learningRate' | 'maxShard'>;

const subjects: Subject[] = [
  ...values.model.map((path): Subject => {
    const model = resolve(path);
    return { name: basename(model), model, steps: 8, learningRate: 1e-3, maxShard: '200MB' };
  }),
  ...(values.fixtures ? tinyModels : []).map((name): Subject => {
    return { name, model: tinyModelDirectory(name), steps: 20, learningRate: 1e-2, maxShard: '0.2MB' };
  }),
];
if (subjects.length === 0) throw new Error('nothing to prove: name a model directory by --model, or --fixtures');

const folder = values.keep === undefined ? await mkdtemp(join(tmpdir(), 'prove-formats-')) : resolve(values.keep);
// Caches and data of this run are its own, whatever the user has.
process.env.LOOPWRIGHT_HOME = join(folder, 'home');
const models: { readonly name: string; readonly result: ModelProofs }[] = [];
try {
  for (const subject of subjects) {
    console.error(`${subject.name} …`);
    const own = join(folder, subject.name);
    await mkdir(own, { recursive: true });
    models.push({ name: subject.name, result: await proveModel({ ...subject, python: values.python, folder: own }) });
    if (values.keep === undefined) await rm(own, { recursive: true, force: true });
  }
} finally {
  if (values.keep === undefined) await rm(folder, { recursive: true, force: true });
}
const versions = Object.entries(models[0]!.result.versions).map(([name, version]) => `${name} ${version}`);
console.log(`${versions.join(', ')}; ${process.platform} ${process.arch}\n`);
for (const line of reportLines(models)) console.log(line);
process.exitCode = allHold(models) ? 0 : 1;
