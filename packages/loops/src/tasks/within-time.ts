/** A task whose calls end, and can be followed: what never answers would keep a smoke test or an evaluation for ever. */
import { CallTimes } from '../environments/call-times.js';
import { checkedGrade } from '../environments/checked-grade.js';
import { type Environment, type Grade, isFailure, type Problem } from '../environments/environment.js';
import type { EpisodeEnvironment } from '../episodes/environment.js';
import { isAnswerEnvironment, type Task } from './task.js';

export interface WithinTimeOptions {
  /** Milliseconds that a call may take while no other ends. */
  readonly limitMs: number;
  /** A call begins: its name, such as `grade`, and the id of its problem. */
  readonly onCall?: (name: string, problem: string) => void;
  /** A call threw, took too long, or gave a grade that is a failure or none. */
  readonly onFailure?: (error: unknown) => void;
}

/** The same task; a call of its environment that takes too long is rejected with `grader_timeout`. */
export function withinTime<P extends Problem>(
  task: Task<P>,
  { limitMs, onCall, onFailure }: WithinTimeOptions,
): Task<P> {
  const { environment } = task;
  const times = new CallTimes(limitMs);
  const bounded: Bounded = async (name, { problem, work, gradeOf }) => {
    onCall?.(name, problem.id);
    try {
      const made = await times.bounded(name, work);
      const given = gradeOf?.(made);
      const grade = given === undefined ? undefined : checkedGrade(given);
      if (grade !== undefined && isFailure(grade)) onFailure?.(grade.error);
      return made;
    } catch (error) {
      onFailure?.(error);
      throw error;
    }
  };
  return {
    ...task,
    environment: isAnswerEnvironment(environment)
      ? answersWithin(environment, bounded)
      : episodesWithin(environment, bounded),
  };
}

interface Call<T> {
  readonly problem: Problem;
  readonly work: () => T | Promise<T>;
  /** What of its result is a grade, where one is. */
  readonly gradeOf?: (made: T) => Grade | undefined;
}

type Bounded = <T>(name: string, call: Call<T>) => Promise<T>;

function answersWithin<P extends Problem>(environment: Environment<P>, bounded: Bounded): Environment<P> {
  const { prompt } = environment;
  return {
    ...environment,
    draw: (random) => environment.draw(random),
    ...(prompt === undefined ? {} : { prompt: (problem, tokenizer) => prompt.call(environment, problem, tokenizer) }),
    grade: (answer, context) =>
      bounded('grade', {
        problem: answer.problem,
        work: () => environment.grade(answer, context),
        gradeOf: (grade) => grade,
      }),
  };
}

function episodesWithin<P extends Problem>(
  environment: EpisodeEnvironment<P>,
  bounded: Bounded,
): EpisodeEnvironment<P> {
  return {
    ...environment,
    draw: (random) => environment.draw(random),
    async begin(problem, context) {
      const episode = await bounded('begin', { problem, work: () => environment.begin(problem, context) });
      const { unfinished } = episode;
      return {
        messages: episode.messages,
        respond: (turn) =>
          bounded('respond', {
            problem,
            work: () => episode.respond(turn),
            gradeOf: (reply) => ('grade' in reply ? reply.grade : undefined),
          }),
        ...(unfinished === undefined
          ? {}
          : {
              unfinished: (why) =>
                bounded('unfinished', {
                  problem,
                  work: () => unfinished.call(episode, why),
                  gradeOf: (grade) => grade,
                }),
            }),
        close: () => bounded('close', { problem, work: () => episode.close?.() }),
      };
    },
  };
}
