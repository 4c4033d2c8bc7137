/** A task whose calls end: what never answers would keep a smoke test for ever, as it would a run. */
import { LoopwrightError } from '@loopwright/protocol';
import type { Environment, Problem } from '../environments/environment.js';
import type { EpisodeEnvironment } from '../episodes/environment.js';
import { isAnswerEnvironment, type Task } from '../tasks/task.js';

export interface WithinTimeOptions {
  /** Milliseconds that a call may take while no other ends. */
  readonly limitMs: number;
}

/** The same task; a call of its environment that takes too long is rejected with `grader_timeout`. */
export function withinTime<P extends Problem>(task: Task<P>, { limitMs }: WithinTimeOptions): Task<P> {
  const { environment } = task;
  const { bounded } = new CallTimes(limitMs);
  return {
    ...task,
    environment: isAnswerEnvironment(environment)
      ? answersWithin(environment, bounded)
      : episodesWithin(environment, bounded),
  };
}

type Bounded = <T>(name: string, work: () => T | Promise<T>) => Promise<T>;

function answersWithin<P extends Problem>(environment: Environment<P>, bounded: Bounded): Environment<P> {
  const { prompt } = environment;
  return {
    ...environment,
    draw: (random) => environment.draw(random),
    ...(prompt === undefined ? {} : { prompt: (problem, tokenizer) => prompt.call(environment, problem, tokenizer) }),
    grade: (answer, context) => bounded('grade', () => environment.grade(answer, context)),
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
      const episode = await bounded('begin', () => environment.begin(problem, context));
      const { unfinished } = episode;
      return {
        messages: episode.messages,
        respond: (turn) => bounded('respond', () => episode.respond(turn)),
        ...(unfinished === undefined
          ? {}
          : { unfinished: (why) => bounded('unfinished', () => unfinished.call(episode, why)) }),
        close: () => bounded('close', () => episode.close?.()),
      };
    },
  };
}

/** Calls under way. Those that share few places, such as a sandbox's, wait for one another: while some end, none is stuck. */
class CallTimes {
  readonly #limitMs: number;
  readonly #restarts = new Set<() => void>();

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  readonly bounded: Bounded = async (name, work) => {
    let timer: NodeJS.Timeout | undefined;
    let restart = (): void => {};
    const late = new Promise<never>((_, reject) => {
      restart = () => {
        clearTimeout(timer);
        timer = setTimeout(() => reject(tooLate(name, this.#limitMs)), this.#limitMs).unref();
      };
    });
    late.catch(() => {}); // it may lose the race
    restart();
    this.#restarts.add(restart);
    try {
      const made = await Promise.race([work(), late]);
      this.#restarts.delete(restart);
      for (const other of this.#restarts) other();
      return made;
    } finally {
      this.#restarts.delete(restart);
      clearTimeout(timer);
    }
  };
}

function tooLate(name: string, limitMs: number): LoopwrightError {
  return new LoopwrightError({
    code: 'grader_timeout',
    message: `${name} gave nothing within ${limitMs / 1000} s; let it resolve, or bound its work`,
    details: { field: name, remedy: 'let it resolve, or bound its work' },
  });
}
