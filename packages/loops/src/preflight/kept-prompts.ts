/** Prompts that are made once, for all who look at them: long ones take as long to encode as a small model takes to read them. */
import type { Tokenizer } from '@loopwright/text';
import { type Environment, type Problem, promptOf } from '../environments/environment.js';

/** The same environment; of these problems each prompt is made when it is first asked for, and kept. */
export function withKeptPrompts<P extends Problem>(
  environment: Environment<P>,
  problems: readonly P[],
): Environment<P> {
  const kept = new Map<P, number[] | undefined>(problems.map((problem) => [problem, undefined]));
  const prompt = (problem: P, tokenizer: Tokenizer): number[] => {
    const tokens = kept.get(problem) ?? promptOf(environment, problem, tokenizer);
    if (kept.has(problem)) kept.set(problem, tokens);
    return tokens;
  };
  const { name, stop } = environment;
  return {
    ...{ name, ...(stop === undefined ? {} : { stop }), prompt },
    draw: (random) => environment.draw(random),
    grade: (answer, context) => environment.grade(answer, context),
  };
}
