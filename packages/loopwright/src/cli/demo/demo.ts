/** `loopwright demo`: GRPO on the bundled model, from the first sample to an adapter on disk. */
import { join } from 'node:path';
import {
  type ArithmeticEnvironment,
  type ArithmeticProblem,
  accuracyText,
  arithmetic,
  counted,
  type Evaluation,
  escapeText,
  evaluate,
  type Metrics,
  phaseSeconds,
  runGrpo,
  type Sampler,
} from '@loopwright/loops';
import { createTerminalView } from '@loopwright/loops/node';
import type { Tokenizer } from '@loopwright/text';
import type { ServiceConnection } from '../../connect.js';
import { goOnCommand } from '../../training/go-on.js';
import { type TrainingRun, withTrainingRun } from '../../training/training-run.js';
import type { Console } from '../console.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { demoSettings } from './settings.js';

export interface DemoOptions {
  readonly steps: number;
  readonly seed: number;
  /** Problems to be judged by. */
  readonly heldOut: number;
  readonly checkpointEvery: number;
  /** Folder of the run to go on with. */
  readonly resume?: string;
  readonly allowChanges?: boolean;
}

type ArithmeticEvaluation = Evaluation<ArithmeticProblem>;

export async function demo(options: DemoOptions, { console, settings, exitWith }: CommandContext): Promise<void> {
  const clock = phaseClock();
  const { steps, seed, heldOut, resume, checkpointEvery, allowChanges } = options;
  const { model: baseModel, rank, alpha } = demoSettings;
  console.line(`${console.paint.bold('Loopwright demo')}: ${baseModel} learns arithmetic from rewards alone.`);
  let folder: string | undefined;
  const record = {
    folder: join(settings.home, 'runs', 'demo'),
    ...{ resume, checkpointEvery, allowChanges: allowChanges === true },
    config: { ...demoSettings, steps, heldOut },
    seeds: { seed },
    start: (service: ServiceConnection) => service.createLoraTrainingClient({ baseModel, rank, alpha, seed }),
    onNotice: (line: string) => console.note(line),
  };
  const ended = await withTrainingRun(record, async (parts) => {
    folder = parts.run.folder;
    clock.end('start');
    await trainAndReport({ ...options, ...parts, console, clock });
    return true;
  });
  if (ended !== undefined) return;
  console.event({ type: 'interrupted', run: folder });
  exitWith(exitCodes.interrupted);
}

interface DemoRun extends DemoOptions, TrainingRun {
  readonly console: Console;
  readonly clock: PhaseClock;
}

async function trainAndReport(demoRun: DemoRun): Promise<void> {
  const { console, service, training, clock, run, afterStep, signal, steps, seed, heldOut } = demoRun;
  const environment = arithmetic();
  const tokenizer = await training.getTokenizer();
  const problems = environment.problems({ split: 'held-out', count: heldOut, seed });
  const judge = (sampler: Sampler) =>
    evaluate(sampler, { environment, tokenizer, problems, maxTokens: demoSettings.maxTokens, signal });

  const reference = await service.createSamplingClient({ baseModel: demoSettings.model });
  console.line(`Judging ${problems.length} problems that it is never trained on …`);
  const before = await judge(reference); // what an adapter begins as
  clock.end('evaluation');
  console.event(evaluationEvent('before', before));
  if (afterStep === 0) await run.validation(0, before);
  console.line(`Held-out problems, before training: ${console.paint.bold(accuracyText(before))}`);
  showAnswers('What it writes before', before, console);

  const metrics = await learn({ ...demoRun, environment, tokenizer, reference });
  clock.skip();

  const description = `loopwright demo, ${steps} steps, seed ${seed}`;
  const adapter = await training.saveWeightsForSampler({ description });
  clock.end('saving');
  const after = await judge(training.createSamplingClient(adapter.modelPackageArn));
  clock.end('evaluation');
  console.event(evaluationEvent('after', after));
  await run.validation(steps, after);
  showAnswers('What it writes after', after, console, before);
  const directory = await service.versionDirectory(adapter.modelPackageArn);
  reportEnd({ console, steps, before, after, metrics, clock, directory, adapter, runFolder: run.folder });
}

interface LearnOptions extends DemoRun {
  readonly environment: ArithmeticEnvironment;
  readonly tokenizer: Tokenizer;
  readonly reference: Awaited<ReturnType<ServiceConnection['createSamplingClient']>>;
}

async function learn({
  console,
  training,
  environment,
  tokenizer,
  reference,
  steps,
  seed,
  signal,
  clock,
  run,
  checkpoints,
}: LearnOptions) {
  const { groupsPerStep, samplesPerGroup, maxTokens, learningRate, klEverySteps } = demoSettings;
  console.line();
  console.line(
    `${counted(steps, 'step')} of ${groupsPerStep} problems × ${samplesPerGroup} answers; reward 1 for the right number, 0 for anything else.`,
  );
  using view = createTerminalView({ stream: console.stdout, title: 'GRPO' });
  const { metrics } = await runGrpo({
    ...{ training, environment, tokenizer, steps, seed, checkpoints, signal },
    ...{ groupsPerStep, samplesPerGroup, maxTokens, learningRate },
    reference: { scorer: reference, everySteps: klEverySteps },
    guard: { onAlarm: (alarm) => console.event({ type: 'alarm', ...alarm }) }, // the view shows them
    onNotice: (notice) => (console.json ? console.note(notice.message) : view.onNotice(notice)),
    onFixedSamples: run.onFixedSamples,
    onStep: async (step) => {
      await run.onStep(step);
      console.event({ type: step.type, step: step.step, totalSteps: step.totalSteps, metrics: step.metrics });
      if (!console.json) view.onStep(step);
      clock.add(step.metrics);
    },
  });
  return metrics;
}

function evaluationEvent(when: 'before' | 'after', { accuracy, correct, n, interval }: ArithmeticEvaluation): object {
  return { type: 'evaluation', when, accuracy, correct, n, interval };
}

/** Completions as the model wrote them, escaped; the same problems before and after. */
function showAnswers(
  title: string,
  { answers }: ArithmeticEvaluation,
  console: Console,
  earlier?: ArithmeticEvaluation,
): void {
  const rows = (earlier ?? { answers }).answers.slice(0, demoSettings.shown).map(({ problem }) => problem.id);
  console.line();
  console.line(`${title}:`);
  for (const { problem, text, grade } of answers.filter((answer) => rows.includes(answer.problem.id))) {
    const isRight = grade.status === 'ok' && grade.reward === 1;
    const written = `${problem.question}${escapeText(text)}`.padEnd(20);
    console.line(
      `  ${written}  ${isRight ? console.paint.green('right') : console.paint.yellow(`wrong: ${problem.answer}`)}`,
    );
  }
}

interface EndOfDemo {
  readonly console: Console;
  /** Of the whole run; `metrics` are those of this process. */
  readonly steps: number;
  readonly before: ArithmeticEvaluation;
  readonly after: ArithmeticEvaluation;
  readonly metrics: readonly Metrics[];
  readonly clock: PhaseClock;
  readonly directory: string | undefined;
  readonly adapter: { readonly modelPackageArn: string };
  readonly runFolder: string;
}

function reportEnd(end: EndOfDemo): void {
  const { console, steps, before, after, metrics, clock, directory, adapter, runFolder } = end;
  const seconds = clock.seconds();
  const sampledTokens = metrics.reduce((sum, step) => sum + (step['tokens/sampled'] ?? 0), 0);
  console.event({
    type: 'result',
    accuracy: { before: before.accuracy, after: after.accuracy },
    steps: metrics.length,
    sampledTokens,
    seconds,
    adapter: { ...adapter, ...(directory === undefined ? {} : { directory }) },
    run: runFolder,
  });
  console.line();
  console.table([
    ['before', accuracyText(before)],
    ['after', accuracyText(after)],
    [
      'seconds',
      Object.entries(seconds)
        .filter(([, value]) => value >= 0.5)
        .map(([phase, value]) => `${phase} ${value.toFixed(1)}`)
        .join(', '),
    ],
    ['adapter', directory ?? 'with the server'],
    ['run', runFolder],
    ['arn', adapter.modelPackageArn],
    ['go on', `${goOnCommand(runFolder)} --steps ${2 * steps}`],
    ['next', 'loopwright new my-task: a task of your own'],
  ]);
}

/** Seconds by phase. */
interface PhaseClock {
  /** Gives the time since the last call to a phase. */
  end(phase: string): void;
  /** Gives the time since the last call to nobody: its phases are told by {@link PhaseClock.add}. */
  skip(): void;
  /** The phases of a step. */
  add(metrics: Metrics): void;
  seconds(): Record<string, number>;
}

function phaseClock(now = () => performance.now()): PhaseClock {
  const start = now();
  let last = start;
  const phases = new Map<string, number>();
  const count = (phase: string, ms: number): void => void phases.set(phase, (phases.get(phase) ?? 0) + ms / 1000);
  return {
    end: (phase) => {
      count(phase, now() - last);
      last = now();
    },
    skip: () => {
      last = now();
    },
    add: (metrics) => {
      for (const [phase, seconds] of phaseSeconds(metrics)) count(phase, seconds * 1000);
    },
    seconds: () => ({ ...Object.fromEntries(phases), total: (now() - start) / 1000 }),
  };
}
