/** A task of several turns: what the model sees first, what the world says to each of its answers, and what the whole was worth. */
import type { StopReason } from '@loopwright/protocol';
import type { BrokenCall, ChatMessage } from '@loopwright/text';
import type { Grade } from '../environments/environment.js';
import type { Random } from '../random.js';
import type { ToolDefinition } from './tools.js';

/** Anything that an episode can be about. */
export interface EpisodeProblem {
  /** The same for the same problem, so that sets can be told apart. */
  readonly id: string;
}

/** A whole call of a tool, as the model wrote it. */
export interface ToolCall {
  /** Unique within its turn. */
  readonly id: string;
  readonly name: string;
  /** A JSON object. */
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** One answer of the model, read. */
export interface ModelTurn {
  /** From 0. */
  readonly index: number;
  /** Without reasoning, whole calls and control tokens; broken calls are in it as they were written. */
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: readonly ToolCall[];
  readonly brokenCalls: readonly BrokenCall[];
  /** `length`: cut by the token limit. */
  readonly stopReason: StopReason;
  /** As it goes into the chat. */
  readonly message: ChatMessage;
}

/** What the world says to an answer. */
export type Reply =
  /** The model goes on: `messages` are put behind its answer. `reward` is what this turn earned; default 0. */
  | { readonly messages: readonly ChatMessage[]; readonly reward?: number }
  /** The episode is over. The reward of the grade is what the last turn earned. */
  | { readonly grade: Grade };

/** Why an episode ended without a grade of its own. */
export type Unfinished = 'turn_limit' | 'context_full';

/** One run of a task. Its state is its own: what it draws comes from the `random` of its context alone. */
export interface Episode {
  /** What the model sees first. */
  readonly messages: readonly ChatMessage[];
  respond(turn: ModelTurn): Reply | Promise<Reply>;
  /**
   * What an episode is worth that was cut off. Without it such an episode has no grade: it is left out of training, and counted.
   */
  unfinished?(why: Unfinished): Grade | Promise<Grade>;
  /** Called once when the episode is over, however it ended. */
  close?(): void | Promise<void>;
}

export interface EpisodeContext {
  /** Drawn from the seed of this rollout. */
  readonly random: Random;
  /** Aborted when the rollout's time is over or the run is cancelled: stop what you started. */
  readonly signal: AbortSignal;
}

/** A task of several turns. What throws ends its own rollout as `environment_error`, and no other. */
export interface EpisodeEnvironment<P extends EpisodeProblem = EpisodeProblem> {
  readonly name: string;
  /** Offered to the model by its chat template. */
  readonly tools?: readonly ToolDefinition[];
  /** Further variables of the chat template, such as `{ enable_thinking: false }`. */
  readonly templateVariables?: Readonly<Record<string, unknown>>;
  /** A problem to train on. */
  draw(random: Random): P;
  begin(problem: P, context: EpisodeContext): Episode | Promise<Episode>;
}
