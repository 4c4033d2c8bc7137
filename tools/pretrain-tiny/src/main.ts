/**
 * Makes the bundled model: random weights, a few thousand steps over the textbook, a measurement, a model directory with its
 * card. Everything goes through the public front door, as any training would.
 *
 *   npm run pretrain:tiny -- [--run DIR] [--output DIR]
 *
 * Ctrl-C saves where it was, and every few hundred steps are saved anyway; the same command goes on from there.
 */
import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { arithmetic, connect } from 'loopwright';
import { writeInitialModel } from './initial-model.js';
import { measure } from './measure.js';
import { modelCard } from './model-card.js';
import { type PretrainingStep, pretrain } from './pretrain.js';
import { clearProgress, readProgress, writeProgress } from './progress.js';
import { pretrainingSettings as settings } from './settings.js';

const repository = fileURLToPath(new URL('../../..', import.meta.url));

/** Steps between two lines of output. */
const reportEvery = 100;

/** Steps between two saves: what a run that is killed loses at most. */
const saveEvery = 500;

/** Of the about 1,500 held-out ones. */
const measuredProblems = 1000;

/** What the package carries; the rest of a saved model is made anew by whoever loads it. */
const modelFiles = [
  'config.json',
  'generation_config.json',
  'model.safetensors',
  'tokenizer.json',
  'tokenizer_config.json',
];

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      run: { type: 'string', default: join(repository, 'runs', 'pretrain-tiny') },
      output: { type: 'string', default: join(repository, 'packages', 'tiny', 'model') },
    },
  });
  const [run, output] = [resolve(values.run), resolve(values.output)];
  const initial = join(run, 'initial');
  const progressFile = join(run, 'progress.json');
  const progress = await readProgress(progressFile, settings);
  if (progress === undefined) await rm(run, { recursive: true, force: true });
  await writeInitialModel(initial, settings);

  await using service = await connect({ dataDir: join(run, 'data') });
  const training =
    progress === undefined
      ? await service.createTrainingClient({ baseModel: initial, trainingType: 'full', seed: settings.seed })
      : await service.createTrainingClientFromStateWithOptimizer({
          modelPackageArn: progress.modelPackageArn,
          baseModel: initial,
        });
  const tokenizer = await training.getTokenizer();
  const environment = arithmetic();
  const report = reporter();
  let saved = progress;
  const save = async (doneSteps: number): Promise<void> => {
    const { modelPackageArn } = await training.saveState();
    const earlier = saved;
    saved = { settings, doneSteps, modelPackageArn };
    await writeProgress(progressFile, saved);
    if (earlier !== undefined) await service.deleteModelPackage(earlier.modelPackageArn);
  };
  const doneSteps = await pretrain({
    ...{ training, tokenizer, environment, settings },
    doneSteps: progress?.doneSteps ?? 0,
    signal: interrupted(),
    onStep: async (step) => {
      report(step);
      if (step.step % saveEvery === 0) await save(step.step);
    },
  });
  if (doneSteps < settings.schedule.steps) {
    if (saved?.doneSteps !== doneSteps) await save(doneSteps);
    console.log(`Stopped after ${doneSteps} of ${settings.schedule.steps} steps; the same command goes on from there.`);
    return;
  }
  const { modelPackageArn } = await training.saveWeightsForSampler();
  const measurement = await measure({
    ...{ environment, tokenizer, seed: settings.seed },
    sampler: training.createSamplingClient(modelPackageArn),
    problems: environment.problems({ split: 'held-out', count: measuredProblems, seed: settings.seed }),
  });
  console.log(JSON.stringify(measurement, null, 2));
  await copyModel(await service.versionDirectory(modelPackageArn), output);
  await writeFile(join(output, 'README.md'), modelCard({ settings, measurement }));
  await clearProgress(progressFile);
  console.log(`The model is in ${output}.`);
}

/** Aborted by the first Ctrl-C; a second one ends the process as usual. */
function interrupted(): AbortSignal {
  const controller = new AbortController();
  process.once('SIGINT', () => {
    console.log('Stopping after this step, then saving.');
    controller.abort();
  });
  return controller.signal;
}

/** Prints the mean loss of the steps since the last line. */
function reporter(): (step: PretrainingStep) => void {
  const startedAt = performance.now();
  let losses: number[] = [];
  return ({ step, loss, learningRate, gradNorm }) => {
    losses.push(loss);
    if (step % reportEvery !== 0 && step !== settings.schedule.steps) return;
    const mean = losses.reduce((sum, value) => sum + value, 0) / losses.length;
    losses = [];
    const seconds = (performance.now() - startedAt) / 1000;
    console.log(
      `step ${step}/${settings.schedule.steps}  loss ${mean.toFixed(4)}  gradient norm ${gradNorm.toFixed(2)}  learning rate ${learningRate.toExponential(2)}  ${seconds.toFixed(0)} s`,
    );
  };
}

async function copyModel(from: string | undefined, to: string): Promise<void> {
  if (from === undefined) throw new Error('an embedded server has its versions on this machine');
  await mkdir(to, { recursive: true });
  for (const file of modelFiles) await copyFile(join(from, file), join(to, file));
}

await main();
