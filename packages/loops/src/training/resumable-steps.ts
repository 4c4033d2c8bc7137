/** The steps of a loop of one's own, such as DPO over preference data, saved and gone on with as those of the loops here are. */
import type { JsonValue } from '../data/row.js';
import type { CheckpointOptions } from './checkpoints.js';
import type { LoopNotice } from './grpo-options.js';
import { wholeNumber } from './options.js';
import { nothingLeft, otherLoop } from './progress.js';
import { cancelled } from './scope.js';

/** @typeParam S plain JSON */
export interface ResumableStepsOptions<S> extends CheckpointOptions {
  /** Of the loop, such as `dpo`: another can't go on with it. */
  readonly loop: string;
  /** Of the whole run. */
  readonly steps: number;
  /** What the loop has to know besides the step, as plain JSON, such as the state of a random stream or of a guard; with {@link shuffledBatches} no place in the data. Asked between two steps. */
  readonly state?: () => S;
  /** Given that back where the run goes on, before the first step. */
  readonly restore?: (state: S) => void;
  /** When it is aborted, the step under way ends, its state is saved, and the loop ends with `cancelled`. */
  readonly signal?: AbortSignal;
  /** Told where nothing is left; default: `console.warn` with the message. */
  readonly onNotice?: (notice: LoopNotice) => void;
}

/**
 * Numbers of the steps that are left, from 1. When the body of a step is over, its training calls have to be: what is saved is the state after them.
 *
 * @throws `invalid_argument`; `data_invalid` for checkpoints of another loop; `cancelled`; what saving throws
 * @example
 * let random = createRandom(seed);
 * const state = () => ({ random: random.state });
 * const restore = (saved: ReturnType<typeof state>) => { random = createRandom(saved.random); };
 * for await (const step of resumableSteps({ loop: 'dpo', steps, checkpoints, signal, state, restore })) {
 *   const pass = training.forwardBackwardCustom(nextPairs(random), loss);
 *   await Promise.all([pass, training.optimStep({ learningRate })]);
 * }
 */
export async function* resumableSteps<S extends JsonValue>({
  loop,
  steps,
  checkpoints,
  state,
  restore,
  signal,
  onNotice = ({ message }) => console.warn(message),
}: ResumableStepsOptions<S>): AsyncGenerator<number, void, undefined> {
  wholeNumber('steps', steps, 1);
  if (checkpoints !== undefined) wholeNumber('checkpoints.every', checkpoints.every, 1);
  const { resumed } = checkpoints ?? {};
  if (resumed !== undefined) {
    if (resumed.loop !== loop) throw otherLoop(loop, resumed);
    // A checkpoint that was made without `state` has none.
    if (resumed.state !== null) restore?.(resumed.state as S); // true: what `state` gave to a loop of this name
    if (resumed.step >= steps) onNotice({ type: 'nothing-left', message: nothingLeft(resumed.step, '`steps`') });
  }
  let saved = resumed?.step ?? 0;
  const save = async (step: number): Promise<void> => {
    if (checkpoints === undefined || step === saved) return;
    await checkpoints.save({ loop, step, state: state?.() ?? null }, { signal: new AbortController().signal });
    saved = step;
  };
  for (let step = saved + 1; step <= steps; step++) {
    if (signal?.aborted === true) {
      await save(step - 1);
      throw cancelled(signal, checkpoints?.note?.());
    }
    yield step;
    if (step === steps || step % (checkpoints?.every ?? steps) === 0) await save(step);
  }
}
