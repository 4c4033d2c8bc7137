import { arithmetic, connect, mlflowTracker, readRun, runGrpo, tensorBoardTracker, withRun } from 'loopwright';

const settings = { steps: 4, groupsPerStep: 4, maxTokens: 6, learningRate: 1e-3, seed: 1 };
const environment = arithmetic();
const problems = environment.problems({ split: 'held-out', count: 20, seed: 1 });
const trackers = [tensorBoardTracker(), ...(process.env.MLFLOW_TRACKING_URI === undefined ? [] : [mlflowTracker()])];

await using service = await connect();
const training = await service.createLoraTrainingClient({ baseModel: 'loopwright-tiny', seed: 1 });
const tokenizer = await training.getTokenizer();
await withRun(
  { folder: 'runs/sums', config: settings, seeds: { seed: 1 }, tokenizer, trackers, usage: () => service.usage() },
  (run) =>
    runGrpo({
      ...{ training, environment, ...settings },
      validation: { problems, everySteps: 2 },
      onStep: run.onStep,
      onValidation: run.onValidation,
    }),
);

const { state, steps } = await readRun('runs/sums');
const validations = steps.filter(({ type }) => type === 'validation');
console.log(
  `${state}: ${steps.length - validations.length} steps, validated at ${validations.map(({ step }) => step).join(', ')}`,
);
