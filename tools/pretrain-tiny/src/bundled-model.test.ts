import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { tinyModel } from '@loopwright/tiny';
import { expect, it } from 'vitest';
import { modelConfig, shape } from './initial-model.js';
import { pretrainingSettings } from './settings.js';
import { tokenizerFiles } from './tokenizer-files.js';

const read = (file: string) => readFile(join(tinyModel.directory, file), 'utf8');

it('the bundled model has the shape and the tokenizer that this script writes', async () => {
  const expected = { 'config.json': modelConfig(), ...tokenizerFiles({ contextLength: shape.contextLength }) };
  for (const [file, content] of Object.entries(expected)) expect(JSON.parse(await read(file))).toEqual(content);
});

it('its card tells the settings of this script', async () => {
  const card = await read('README.md');
  const { corpus, schedule, seed } = pretrainingSettings;
  for (const fact of [
    `${schedule.steps} steps of ${corpus.batchSize} problems`,
    `up to ${schedule.peak} over`,
    `Seed ${seed} `,
  ])
    expect(card).toContain(fact);
  for (const share of [corpus.unanswered, corpus.forgottenCarries])
    expect(card).toContain(`${Math.round(share * 100)} %`);
});
