import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { SampleRequest } from '@loopwright/engine';
import { LocalEngine } from '@loopwright/engine/local';
import { type ArithmeticProblem, arithmetic } from '@loopwright/loops';
import { temporaryDirectory } from '@loopwright/testkit';
import type { Tokenizer } from '@loopwright/text';
import { loadTokenizerFromDirectory } from '@loopwright/text/node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tinyModel } from './index.js';

describe('the files of the bundled model', () => {
  it('are a model directory of at most 4 MB, with a card', async () => {
    const files = await readdir(tinyModel.directory);
    expect(files.sort()).toEqual([
      'README.md',
      'config.json',
      'generation_config.json',
      'model.safetensors',
      'tokenizer.json',
      'tokenizer_config.json',
    ]);
    const sizes = await Promise.all(files.map(async (file) => (await stat(join(tinyModel.directory, file))).size));
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(4e6);
  });

  it('are in the package', async () => {
    const { files } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8')) as {
      readonly files: readonly string[];
    };
    expect(files).toContain('model');
  });
});

describe('the bundled model', () => {
  const environment = arithmetic();
  const problems = environment.problems({ split: 'held-out', count: 300, seed: 11 });
  let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
  let engine: LocalEngine;
  let tokenizer: Tokenizer;

  beforeAll(async () => {
    folder = await temporaryDirectory();
    engine = await LocalEngine.load(tinyModel, { cacheDirectory: folder.path });
    tokenizer = await loadTokenizerFromDirectory(tinyModel.directory);
  });
  afterAll(async () => {
    await engine[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  /** Whether each of a number of samples is right, for each problem. */
  function answers(prompt: (problem: ArithmeticProblem) => number[], numSamples: number): Promise<boolean[][]> {
    return Promise.all(
      problems.map(async (problem, seed) => {
        const params = { maxTokens: 8, temperature: 1, topK: -1, topP: 1, seed, stop: [], stopTokenIds: [] };
        const request: SampleRequest = {
          ...{ prompt: Int32Array.from(prompt(problem)), numSamples, params },
          ...{ weights: { type: 'base' }, promptLogprobs: false, topkPromptLogprobs: 0 },
        };
        const { sequences } = await engine.sample(request);
        return Promise.all(
          sequences.map(async ({ tokens, stopReason }) => {
            const grade = await environment.grade({ problem, text: tokenizer.decode(tokens), stopReason });
            return grade.status === 'ok' && grade.reward === 1;
          }),
        );
      }),
    );
  }

  it('has a context of 1024 tokens and a vocabulary that is its tokenizer’s', () => {
    expect(engine.model.contextLength).toBe(1024);
    expect(engine.model.vocabSize).toBe(tokenizer.vocabSize);
  });

  it('is right about half of the time on problems that it has never seen, and nine times in ten at least once in eight', async () => {
    const samples = await answers(({ question }) => tokenizer.encode(question), 8);
    const accuracy = samples.flat().filter(Boolean).length / samples.flat().length;
    expect(accuracy).toBeGreaterThan(0.43);
    expect(accuracy).toBeLessThan(0.57);
    expect(samples.filter((group) => group.includes(true)).length / samples.length).toBeGreaterThan(0.9);
  });

  it('answers as well through its chat template', async () => {
    const asChat = ({ question }: ArithmeticProblem) =>
      tokenizer.applyChatTemplate([{ role: 'user', content: question }], { addGenerationPrompt: true });
    const samples = (await answers(asChat, 2)).flat();
    expect(samples.filter(Boolean).length / samples.length).toBeGreaterThan(0.4);
  });
});
