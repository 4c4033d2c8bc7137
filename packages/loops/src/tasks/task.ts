/** A task as the commands take it: an environment, its problems, and labelled completions that its grader is tested with. */
import type { StopReason } from '@loopwright/protocol';
import type { Environment, Problem } from '../environments/environment.js';
import type { EpisodeEnvironment, ToolCall } from '../episodes/environment.js';
import type { BadFromGoodOptions } from '../grader-gate/bad-kinds.js';

/**
 * Problems in order: a list, anything that is read by `for await`, or a function that gives either. It must give the same
 * problems each time it is read, so a generator is given as a function.
 */
export type ProblemSource<P extends Problem> =
  | readonly P[]
  | AsyncIterable<P>
  | (() => readonly P[] | AsyncIterable<P>);

/** One answer of a labelled episode. */
export interface LabelledTurn {
  readonly text: string;
  readonly toolCalls?: readonly Omit<ToolCall, 'id'>[];
}

/** A completion of which people know what it is worth. */
export interface LabelledCompletion<P extends Problem = Problem> {
  readonly problem: P;
  /** `good`: the grader must take it for right; `bad`: it must not. */
  readonly label: 'good' | 'bad';
  /** What the model is taken to have written; of an episode its answers, one after another. */
  readonly completion: string | readonly LabelledTurn[];
  /** Default `stop`; `length` where it was cut by the token limit. */
  readonly stopReason?: StopReason;
  /** In a few words why it has its label, such as `comma for point`; cases are told apart and counted by it. */
  readonly kind?: string;
}

/** How a task is meant to be trained and judged: what commands take where their command line says nothing else. */
export interface TaskSettings {
  /** Completions of a prompt in a step, G; default 8. */
  readonly groupSize?: number;
  /** Prompts of a step, P; default 8. */
  readonly groupsPerStep?: number;
  /** Default 100. */
  readonly steps?: number;
  /** New tokens of an answer at most; default 64. */
  readonly maxTokens?: number;
  /** Default 1. */
  readonly temperature?: number;
  /** Default 1e-4. */
  readonly learningRate?: number;
  /** Of the adapter; default 16. */
  readonly rank?: number;
  /** Rewards from here on count as right; default 1. */
  readonly correctReward?: number;
  /** Answers in an episode at most; default 8. */
  readonly maxTurns?: number;
}

/** What `defineTask` takes. */
export interface Task<P extends Problem = Problem> {
  /** 1 to 100 characters, without control characters. */
  readonly name: string;
  /** Of one answer, or of several turns. */
  readonly environment: Environment<P> | EpisodeEnvironment<P>;
  /** Problems to train on; without them they are drawn from the environment. */
  readonly train?: ProblemSource<P>;
  /** Problems that are never trained on. */
  readonly heldOut?: ProblemSource<P>;
  /** For the grader gate (`loopwright grader test`). */
  readonly cases?: readonly LabelledCompletion<P>[];
  /** How the gate makes bad completions from the good ones: such as kinds that are right in this task, which are left out. */
  readonly badFromGood?: BadFromGoodOptions;
  /** Base model by name or path; default `loopwright-tiny`. */
  readonly model?: string;
  readonly settings?: TaskSettings;
}

/** Of one answer, not of several turns. */
export function isAnswerEnvironment<P extends Problem>(
  environment: Environment<P> | EpisodeEnvironment<P>,
): environment is Environment<P> {
  return 'grade' in environment;
}
