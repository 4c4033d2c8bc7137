/** Arithmetic as an environment: problems of the `rl` set to train on, of the `held-out` set to be judged by. */
import { complaint } from '@loopwright/protocol';
import { createRandom, type Random } from '../../random.js';
import type { Environment } from '../environment.js';
import { gradeArithmetic } from './grader.js';
import {
  type ArithmeticProblem,
  type ArithmeticSpaceOptions,
  allProblems,
  arithmeticSpace,
  drawProblem,
} from './problems.js';
import { type ArithmeticSplit, arithmeticSplit } from './split.js';

export interface ArithmeticEnvironment extends Environment<ArithmeticProblem> {
  /**
   * Different problems of a set, in an order that the seed decides.
   *
   * @throws `invalid_argument` when the set has fewer
   */
  problems(options: ProblemsOptions): ArithmeticProblem[];
  /** A problem of a set; `draw` is this for `rl`. */
  drawFrom(split: ArithmeticSplit, random: Random): ArithmeticProblem;
}

export interface ProblemsOptions {
  readonly split: ArithmeticSplit;
  readonly count: number;
  readonly seed: number;
}

/**
 * Sums, differences and products, to be answered by the bare number.
 *
 * @throws `invalid_argument` for options out of range
 * @example
 * const environment = arithmetic({ level: 2 });
 * environment.draw(createRandom(1)).question; // such as '57-23='
 */
export function arithmetic(options: ArithmeticSpaceOptions = {}): ArithmeticEnvironment {
  const space = arithmeticSpace(options);
  const drawFrom = (split: ArithmeticSplit, random: Random): ArithmeticProblem => {
    // Each set holds a tenth of the problems or more, so a thousand misses in a row don't happen but in tiny spaces.
    for (let tries = 0; tries < 1000; tries++) {
      const problem = drawProblem(space, random);
      if (arithmeticSplit(problem) === split) return problem;
    }
    throw complaint({
      field: 'maxOperand',
      expected: `a space with problems in the ${split} set`,
      got: 'none found',
      remedy: 'take larger operands or more operations',
    });
  };
  return {
    name: 'arithmetic',
    draw: (random) => drawFrom('rl', random),
    drawFrom,
    grade: gradeArithmetic,
    problems({ split, count, seed }) {
      const all = [...allProblems(space)].filter((problem) => arithmeticSplit(problem) === split);
      if (count > all.length) {
        throw complaint({
          field: 'count',
          expected: `at most ${all.length}, the size of the ${split} set`,
          got: String(count),
          remedy: 'ask for fewer, or take larger operands',
        });
      }
      return createRandom(seed).shuffle(all).slice(0, count);
    },
  };
}
