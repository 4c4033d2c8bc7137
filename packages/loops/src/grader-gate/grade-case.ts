/** What a grader says of one labelled completion: of one answer, or of an episode whose answers are given. */
import { LoopwrightError } from '@loopwright/protocol';
import { checkedGrade } from '../environments/checked-grade.js';
import { type Environment, type Grade, isFailure, type Problem } from '../environments/environment.js';
import { earnedBy } from '../episodes/earned-by.js';
import type { EpisodeEnvironment, ModelTurn } from '../episodes/environment.js';
import { createRandom } from '../random.js';
import { isAnswerEnvironment, type LabelledCompletion, type LabelledTurn } from '../tasks/task.js';
import type { GateGrade } from './words.js';

/** Without what it is labelled as. */
export type GivenCompletion<P extends Problem> = Pick<LabelledCompletion<P>, 'problem' | 'completion' | 'stopReason'>;

export interface GradeCaseOptions {
  /** Of the whole case. */
  readonly timeoutMs: number;
  /** Is handed a function that lets the time begin anew, until the grade is there. */
  readonly onStart?: (restart: () => void) => void;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Never rejects for what the grader does: what it throws, or gives that is no grade, is a `grader_error`, what takes too long a `timeout`.
 *
 * @throws the signal's reason
 */
export async function gradeCase<P extends Problem>(
  environment: Environment<P> | EpisodeEnvironment<P>,
  given: GivenCompletion<P>,
  { timeoutMs, onStart, signal }: GradeCaseOptions,
): Promise<GateGrade> {
  const own = new AbortController();
  const onAbort = (): void => own.abort(signal?.reason);
  signal?.throwIfAborted();
  signal?.addEventListener('abort', onAbort, { once: true });
  const late = new LoopwrightError({
    code: 'grader_timeout',
    message: `the grader gave no grade within ${timeoutMs / 1000} s; give it more time, or bound its work`,
  });
  const startTimer = () => setTimeout(() => own.abort(late), timeoutMs);
  let timer = startTimer();
  onStart?.(() => {
    clearTimeout(timer);
    timer = startTimer();
  });
  const ended = new Promise<never>((_, reject) => {
    own.signal.addEventListener('abort', () => reject(own.signal.reason), { once: true });
  });
  ended.catch(() => {}); // it may lose the race
  try {
    return await Promise.race([judge(environment, given, own.signal), ended]);
  } catch (error) {
    signal?.throwIfAborted();
    return error === late ? { status: 'timeout', error } : { status: 'grader_error', error };
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }
}

async function judge<P extends Problem>(
  environment: Environment<P> | EpisodeEnvironment<P>,
  { problem, completion, stopReason = 'stop' }: GivenCompletion<P>,
  signal: AbortSignal,
): Promise<GateGrade> {
  if (!isAnswerEnvironment(environment)) {
    const turns = typeof completion === 'string' ? [{ text: completion }] : completion;
    return replay(environment, { problem, turns, stopReason, signal });
  }
  const text = typeof completion === 'string' ? completion : (completion.at(-1)?.text ?? '');
  return checkedGrade(await environment.grade({ problem, text, stopReason }, { signal }));
}

interface Replay<P extends Problem> {
  readonly problem: P;
  readonly turns: readonly LabelledTurn[];
  readonly stopReason: 'stop' | 'length';
  readonly signal: AbortSignal;
}

/** An episode with answers that are given, always by the same seed. */
async function replay<P extends Problem>(
  environment: EpisodeEnvironment<P>,
  { problem, turns, stopReason, signal }: Replay<P>,
): Promise<GateGrade> {
  const episode = await environment.begin(problem, { random: createRandom(0), signal });
  try {
    let earned = 0;
    for (const [index, turn] of turns.entries()) {
      const isLast = index === turns.length - 1;
      const reply = await episode.respond(modelTurn(turn, index, isLast ? stopReason : 'stop'));
      if ('grade' in reply) return withEarned(reply.grade, earned);
      earned += earnedBy(reply);
    }
    if (episode.unfinished === undefined) return { status: 'unfinished' };
    return withEarned(await episode.unfinished('turn_limit'), earned);
  } finally {
    await episode.close?.();
  }
}

function withEarned(given: Grade, earned: number): Grade {
  const grade = checkedGrade(given);
  return isFailure(grade) ? grade : { ...grade, reward: grade.reward + earned };
}

function modelTurn({ text, toolCalls = [] }: LabelledTurn, index: number, stopReason: 'stop' | 'length'): ModelTurn {
  const calls = toolCalls.map((call, i) => ({ id: `call-${index}-${i}`, ...call }));
  const asMessage = calls.map(({ id, name, arguments: given }) => ({
    id,
    type: 'function',
    function: { name, arguments: JSON.stringify(given) },
  }));
  const message = { role: 'assistant', content: text, ...(calls.length === 0 ? {} : { tool_calls: asMessage }) };
  return { index, text, reasoning: '', toolCalls: calls, brokenCalls: [], stopReason, message };
}
