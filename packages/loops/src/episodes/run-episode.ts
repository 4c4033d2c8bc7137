/** One rollout: the model and its environment take turns until the episode is over. */
import type { SampledTokens } from '@loopwright/client';
import { asLoopwrightError, complaint, LoopwrightError } from '@loopwright/protocol';
import { type ChatMessage, type Renderer, rendererFor, type Tokenizer } from '@loopwright/text';
import { checkedGrade } from '../environments/checked-grade.js';
import { type Grade, isFailure } from '../environments/environment.js';
import { createRandom, mixSeed } from '../random.js';
import type { Sampler } from '../training/clients.js';
import { earnedBy } from './earned-by.js';
import type { Episode, EpisodeEnvironment, EpisodeProblem, ModelTurn, Unfinished } from './environment.js';
import { readTurn } from './read-turn.js';
import { type EpisodeSequence, Transcript } from './transcript.js';

/** How a rollout ended. `done` alone is the environment's word; `turn_limit` and `context_full` are worth what `unfinished` says. */
export type EpisodeStatus = 'done' | Unfinished | 'timeout' | 'environment_error' | 'sampling_error';

/** A turn that was taken. */
export interface TakenTurn {
  readonly turn: ModelTurn;
  readonly sequence: SampledTokens;
  /** What it earned, the grade of the episode left out. */
  readonly reward: number;
  /** Its text has other ids when it is encoded again; the sampled ids are trained. */
  readonly isRetokenized: boolean;
}

/** One run of a problem. */
export interface EpisodeRollout<P extends EpisodeProblem = EpisodeProblem> {
  readonly problem: P;
  readonly status: EpisodeStatus;
  readonly turns: readonly TakenTurn[];
  /** Tokens as they were given and sampled. */
  readonly sequences: readonly EpisodeSequence[];
  /** Absent where the episode ended without: by a failure, a timeout, or cut off with no word on what that is worth. */
  readonly grade?: Grade;
  /** Sum of the turns' rewards and the grade's; absent where there is no grade, or grading failed. */
  readonly reward?: number;
  /** Of a rollout that failed. */
  readonly error?: unknown;
  /** How many turns `isRetokenized`. */
  readonly retokenizedTurns: number;
  readonly milliseconds: number;
}

export interface RunEpisodeOptions<P extends EpisodeProblem> {
  readonly sampler: Sampler;
  readonly tokenizer: Tokenizer;
  readonly environment: EpisodeEnvironment<P>;
  readonly problem: P;
  readonly seed: number;
  readonly maxTurns: number;
  /** New tokens of a turn at most. */
  readonly maxTokens: number;
  /** Tokens of the whole chat at most. */
  readonly maxContext: number;
  readonly temperature: number;
  /** Ends the rollout: with status `timeout` if `isTimeout` says so, else by a rejection. */
  readonly signal: AbortSignal;
  readonly isTimeout: () => boolean;
  readonly now: () => number;
}

/**
 * Runs one episode. What the environment or the sampler throws becomes a status; only the end of the whole run rejects.
 *
 * @throws the signal's reason, when it was not a timeout
 */
export async function runEpisode<P extends EpisodeProblem>(options: RunEpisodeOptions<P>): Promise<EpisodeRollout<P>> {
  const { environment, problem, signal, isTimeout, now, tokenizer } = options;
  const startedAt = now();
  const { tools, templateVariables: variables = {} } = environment;
  const renderer = rendererFor(tokenizer);
  const transcript = new Transcript(renderer, {
    variables,
    ...(tools === undefined || tools.length === 0 ? {} : { tools }),
  });
  const turns: TakenTurn[] = [];
  let episode: Episode | undefined;
  let end: End;
  try {
    const context = { random: createRandom(mixSeed(options.seed, -1)), signal };
    episode = await orAborted(signal, 'environment_error', () => environment.begin(problem, context));
    end = await play(options, { episode, renderer, transcript, turns });
  } catch (error) {
    if (signal.aborted && !isTimeout()) {
      void closed(episode, isTimeout);
      throw signal.reason;
    }
    end = signal.aborted ? { status: 'timeout', error: signal.reason } : await ended(error, episode, signal);
  }
  const closing = await closed(episode, isTimeout);
  if (closing !== undefined && end.error === undefined) end = { status: 'environment_error', error: closing };
  const { grade } = end;
  const earned = turns.reduce((sum, { reward }) => sum + reward, 0);
  return {
    problem,
    turns,
    sequences: transcript.sequences,
    retokenizedTurns: turns.filter(({ isRetokenized }) => isRetokenized).length,
    milliseconds: now() - startedAt,
    ...end,
    ...(grade === undefined || isFailure(grade) ? {} : { reward: earned + grade.reward }),
  };
}

interface End {
  readonly status: EpisodeStatus;
  readonly grade?: Grade;
  readonly error?: unknown;
}

interface Play {
  readonly episode: Episode;
  readonly renderer: Renderer;
  readonly transcript: Transcript;
  /** Grows as they are taken. */
  readonly turns: TakenTurn[];
}

async function play<P extends EpisodeProblem>(
  options: RunEpisodeOptions<P>,
  { episode, renderer, transcript, turns }: Play,
): Promise<End> {
  const { sampler, environment, signal, maxTurns, maxContext, temperature, seed } = options;
  const tools = environment.tools?.map((tool) => tool.function.name) ?? [];
  let messages: readonly ChatMessage[] = episode.messages;
  for (let index = 0; index < maxTurns; index++) {
    const { tokens: prompt, thinkingOpen } = environmentWork(() => transcript.prompt(messages));
    const maxTokens = Math.min(options.maxTokens, maxContext - prompt.length);
    if (maxTokens < 1) return unfinished(episode, 'context_full', signal);
    const { stopTokenIds } = renderer; // more than the files may name, as the end of a call
    const sampling = { numSamples: 1, maxTokens, temperature, stopTokenIds, seed: mixSeed(seed, index), signal };
    const { sequences } = await orAborted(signal, 'sampling_error', () => sampler.sample(prompt, sampling));
    const [sequence] = sequences;
    if (sequence === undefined)
      throw new Failure('sampling_error', complaint({ field: 'sequences', expected: '1', got: '0' }));
    transcript.answered(sequence);
    const { turn, isRetokenized } = readTurn(sequence, { renderer, tools, thinkingOpen, index });
    turns.push({ turn, sequence, reward: 0, isRetokenized });
    const reply = await orAborted(signal, 'environment_error', () => episode.respond(turn));
    if ('grade' in reply) return { status: 'done', grade: checkedGrade(reply.grade) };
    turns[turns.length - 1] = { turn, sequence, reward: environmentWork(() => earnedBy(reply)), isRetokenized };
    messages = [...messages, turn.message, ...reply.messages];
  }
  return unfinished(episode, 'turn_limit', signal);
}

async function unfinished(episode: Episode, status: Unfinished, signal: AbortSignal): Promise<End> {
  if (episode.unfinished === undefined) return { status };
  const grade = await orAborted(signal, 'environment_error', () => episode.unfinished!(status));
  return { status, grade: checkedGrade(grade) };
}

/** What went wrong, and whose it was. */
class Failure extends Error {
  readonly status: 'environment_error' | 'sampling_error';

  constructor(status: Failure['status'], cause: unknown) {
    super(status, { cause });
    this.status = status;
  }
}

/** What an exception makes of the rollout. */
async function ended(error: unknown, episode: Episode | undefined, signal: AbortSignal): Promise<End> {
  const { status, cause } = error instanceof Failure ? error : { status: 'environment_error' as const, cause: error };
  const isFull = LoopwrightError.isInstance(cause) && cause.code === 'context_length_exceeded';
  if (status !== 'sampling_error' || !isFull || episode === undefined) return { status, error: cause };
  try {
    return await unfinished(episode, 'context_full', signal);
  } catch (error) {
    return { status: 'environment_error', error: error instanceof Failure ? error.cause : error };
  }
}

/** A chat that the template refuses, or a reward that is no number, is the environment's doing. */
function environmentWork<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new Failure('environment_error', error);
  }
}

/** The work, or a rejection as soon as the signal fires: what ignores the signal is not waited for. */
async function orAborted<T>(signal: AbortSignal, whose: Failure['status'], work: () => PromiseLike<T> | T): Promise<T> {
  signal.throwIfAborted();
  let stop = () => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
  });
  aborted.catch(() => undefined); // the race below is who hears of it
  try {
    return await Promise.race([Promise.resolve().then(work), aborted]);
  } catch (error) {
    throw signal.aborted ? error : new Failure(whose, error);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** What closing threw. After a timeout it is not waited for: it may hang as the rest did. */
async function closed(episode: Episode | undefined, isTimeout: () => boolean): Promise<unknown> {
  const closing = Promise.resolve()
    .then(() => episode?.close?.())
    .then(
      () => undefined,
      (error: unknown) => error ?? asLoopwrightError(error),
    );
  return isTimeout() ? undefined : closing;
}
