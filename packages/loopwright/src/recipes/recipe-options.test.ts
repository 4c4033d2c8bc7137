import { resolve } from 'node:path';
import { tinyModel } from '@loopwright/tiny';
import { describe, expect, it, vi } from 'vitest';
import { readRecipeOptions } from './recipe-options.js';

describe('the command line of a recipe', () => {
  const defaults = { name: 'sums', steps: 40 };

  it('has the values of the recipe where nothing else is said', () => {
    expect(readRecipeOptions(defaults, [])).toEqual({
      baseModel: 'loopwright-tiny',
      connection: {},
      steps: 40,
      seed: 1,
      folder: 'runs/sums',
      place: { folder: 'runs/sums', connection: {}, resume: undefined, checkpointEvery: 10, allowChanges: false },
      own: {},
    });
  });

  it('takes model, server, steps, seed and folder, and options of the recipe alone', () => {
    const args = ['--model', 'org/name', '--url', 'http://host:8080', '--max-steps', '3', '--seed', '7', '--run', 'x'];
    const own = { 'train-file': 'rows to learn', other: 'not given' };
    const resume = ['--resume', 'x', '--checkpoint-every', '5', '--allow-changes'];
    expect(readRecipeOptions({ ...defaults, own }, [...args, ...resume, '--train-file', 'rows.jsonl'])).toEqual({
      baseModel: 'org/name',
      connection: { url: 'http://host:8080' },
      steps: 3,
      seed: 7,
      folder: 'x',
      place: {
        ...{ folder: 'x', connection: { url: 'http://host:8080' }, resume: 'x', checkpointEvery: 5 },
        allowChanges: true,
      },
      own: { 'train-file': 'rows.jsonl' },
    });
  });

  it('makes the directory of a model absolute', () => {
    const { directory } = tinyModel;
    const { baseModel } = readRecipeOptions(defaults, ['--model', directory]);
    expect(baseModel).toBe(resolve(directory));
  });

  it('refuses what it does not know, numbers that are none, and what stands alone', () => {
    const said = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    for (const args of [['--steps', '3'], ['--max-steps', '0'], ['--seed', '-1'], ['extra']])
      expect(() => readRecipeOptions(defaults, args)).toThrow();
    expect(said).toHaveBeenCalled();
    said.mockRestore();
  });
});
