/** `loopwright demo`: GRPO on the bundled model, from the first sample to an adapter on disk. */
import { join } from 'node:path';
import type { TrainingClient } from '@loopwright/client';
import {
  type ArithmeticEnvironment,
  type ArithmeticProblem,
  accuracyText,
  arithmetic,
  type Evaluation,
  escapeText,
  evaluate,
  type Metrics,
  phaseSeconds,
  runGrpo,
  type Sampler,
} from '@loopwright/loops';
import { createTerminalView, type Run } from '@loopwright/loops/node';
import { LoopwrightError } from '@loopwright/protocol';
import type { Tokenizer } from '@loopwright/text';
import { connect, type ServiceConnection } from '../../connect.js';
import { listenForInterrupt } from '../../interrupt.js';
import { openRun } from '../../runs.js';
import type { Console } from '../console.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { demoSettings } from './settings.js';

export interface DemoOptions {
  readonly steps: number;
  readonly seed: number;
  /** Problems to be judged by. */
  readonly heldOut: number;
  /** A state to go on from. */
  readonly from?: string;
}

type ArithmeticEvaluation = Evaluation<ArithmeticProblem>;

export async function demo(options: DemoOptions, { console, settings, exitWith }: CommandContext): Promise<void> {
  const clock = phaseClock();
  using interrupt = listenForInterrupt({
    onInterrupt: () =>
      console.note('\nStopping after the calls under way, then saving. Ctrl-C again stops at once, without saving.'),
  });
  console.line(`${console.paint.bold('Loopwright demo')}: ${demoSettings.model} learns arithmetic from rewards alone.`);
  await using service = await connect();
  const training = await startTraining(service, options);
  await using record = await openRun({
    folder: join(settings.home, 'runs', 'demo'),
    config: { ...demoSettings, ...options },
    seeds: { seed: options.seed },
    usage: () => service.usage(),
  });
  const run: DemoRun = { ...options, console, service, training, clock, record, signal: interrupt.signal };
  clock.end('start');
  try {
    await trainAndReport(run);
  } catch (error) {
    if (!interrupt.signal.aborted) {
      await record.finish('failed', error);
      throw error;
    }
    await record.finish('interrupted');
    await saveInterrupted(run);
    exitWith(exitCodes.interrupted);
  }
}

function startTraining(service: ServiceConnection, { seed, from }: DemoOptions): Promise<TrainingClient> {
  const { model: baseModel, rank, alpha } = demoSettings;
  return from === undefined
    ? service.createLoraTrainingClient({ baseModel, rank, alpha, seed })
    : service.createTrainingClientFromStateWithOptimizer({ modelPackageArn: from });
}

interface DemoRun extends DemoOptions {
  readonly console: Console;
  readonly service: ServiceConnection;
  readonly training: TrainingClient;
  readonly clock: PhaseClock;
  /** The run folder. */
  readonly record: Run;
  readonly signal: AbortSignal;
}

async function trainAndReport(run: DemoRun): Promise<void> {
  const { console, service, training, clock, record, signal, steps, seed, heldOut } = run;
  const environment = arithmetic();
  const tokenizer = await training.getTokenizer();
  const problems = environment.problems({ split: 'held-out', count: heldOut, seed });
  const judge = (sampler: Sampler) =>
    evaluate(sampler, { environment, tokenizer, problems, maxTokens: demoSettings.maxTokens, signal });

  const reference = await service.createSamplingClient({ baseModel: demoSettings.model });
  console.line(`Judging ${problems.length} problems that it is never trained on …`);
  const before = await judge(await training.saveWeightsAndGetSamplingClient());
  clock.end('evaluation');
  console.event(evaluationEvent('before', before));
  await record.validation(0, before);
  console.line(`Held-out problems, before training: ${console.paint.bold(accuracyText(before))}`);
  showAnswers('What it writes before', before, console);

  const metrics = await learn({ ...run, environment, tokenizer, reference });
  clock.skip();

  const description = `loopwright demo, ${steps} steps, seed ${seed}`;
  const adapter = await training.saveWeightsForSampler({ description });
  const state = await training.saveState({ description });
  clock.end('saving');
  const after = await judge(training.createSamplingClient(adapter.modelPackageArn));
  clock.end('evaluation');
  console.event(evaluationEvent('after', after));
  await record.validation(steps, after);
  showAnswers('What it writes after', after, console, before);
  const directory = await service.versionDirectory(adapter.modelPackageArn);
  await record.finish();
  await training.close();
  reportEnd({ console, before, after, metrics, clock, directory, adapter, state, seed, runFolder: record.folder });
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
  record,
}: LearnOptions) {
  const { groupsPerStep, samplesPerGroup, maxTokens, learningRate, klEverySteps } = demoSettings;
  console.line();
  console.line(
    `${steps} ${steps === 1 ? 'step' : 'steps'} of ${groupsPerStep} problems × ${samplesPerGroup} answers; reward 1 for the right number, 0 for anything else.`,
  );
  using view = createTerminalView({ stream: console.stdout, title: 'GRPO' });
  const { metrics } = await runGrpo({
    ...{ training, environment, tokenizer, steps, seed, signal },
    ...{ groupsPerStep, samplesPerGroup, maxTokens, learningRate },
    reference: { scorer: reference, everySteps: klEverySteps },
    guard: { onAlarm: (alarm) => console.event({ type: 'alarm', ...alarm }) }, // the view shows them
    onNotice: (notice) => (console.json ? console.note(notice.message) : view.onNotice(notice)),
    onFixedSamples: record.onFixedSamples,
    onStep: async (step) => {
      await record.onStep(step);
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
  readonly before: ArithmeticEvaluation;
  readonly after: ArithmeticEvaluation;
  readonly metrics: readonly Metrics[];
  readonly clock: PhaseClock;
  readonly directory: string | undefined;
  readonly adapter: { readonly modelPackageArn: string };
  readonly state: { readonly modelPackageArn: string };
  readonly seed: number;
  readonly runFolder: string;
}

function reportEnd(end: EndOfDemo): void {
  const { console, before, after, metrics, clock, directory, adapter, state, seed, runFolder } = end;
  const seconds = clock.seconds();
  const sampledTokens = metrics.reduce((sum, step) => sum + (step['tokens/sampled'] ?? 0), 0);
  console.event({
    type: 'result',
    accuracy: { before: before.accuracy, after: after.accuracy },
    steps: metrics.length,
    sampledTokens,
    seconds,
    adapter: { ...adapter, ...(directory === undefined ? {} : { directory }) },
    state,
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
    ['go on', goOn(state.modelPackageArn, seed)],
    ['next', 'loopwright new my-task: a task of your own'],
  ]);
}

/** With another seed, or the same problems would come again. */
function goOn(modelPackageArn: string, seed: number): string {
  return `loopwright demo --seed ${seed + 1} --from ${modelPackageArn}`;
}

/** Keeps what was learnt, and says how to go on. */
async function saveInterrupted({ console, training, service, seed }: DemoRun): Promise<void> {
  const { modelPackageArn } = await training.saveState({ description: 'loopwright demo, interrupted' });
  const directory = await service.versionDirectory(modelPackageArn);
  await training.close().catch((error: unknown) => {
    if (!LoopwrightError.isInstance(error) || error.code !== 'cancelled') throw error;
  });
  console.event({ type: 'interrupted', state: { modelPackageArn, ...(directory === undefined ? {} : { directory }) } });
  console.line('Interrupted; what was learnt is saved.');
  console.table([
    ['files', directory ?? 'with the server'],
    ['go on', goOn(modelPackageArn, seed)],
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
