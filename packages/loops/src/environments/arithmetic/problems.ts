/** The problems of arithmetic: `12+7=`, `45-18=`, `6*7=`. */
import { complaint } from '@loopwright/protocol';
import type { Random } from '../../random.js';
import type { Problem } from '../environment.js';

export const arithmeticOperations = ['+', '-', '*'] as const;
export type ArithmeticOperation = (typeof arithmeticOperations)[number];

export interface ArithmeticProblem extends Problem {
  readonly a: number;
  readonly b: number;
  readonly operation: ArithmeticOperation;
}

/** Largest operands by level: of sums and differences, and of products, which are harder. */
export const arithmeticLevels = {
  1: { maxOperand: 9, maxFactor: 5 },
  2: { maxOperand: 99, maxFactor: 12 },
  3: { maxOperand: 999, maxFactor: 99 },
} as const;
export type ArithmeticLevel = keyof typeof arithmeticLevels;

export interface ArithmeticSpaceOptions {
  /** Default 2. */
  readonly level?: ArithmeticLevel;
  /** Operands from 0 to this; default that of the level. */
  readonly maxOperand?: number;
  /** Factors from 0 to this; default that of the level. */
  readonly maxFactor?: number;
  /** Default `+` and `-`. */
  readonly operations?: readonly ArithmeticOperation[];
  /** Whether differences may be below 0; default false: the first operand is then never the smaller one. */
  readonly negative?: boolean;
}

/** Which problems there are; complete. */
export interface ArithmeticSpace {
  readonly maxOperand: number;
  readonly maxFactor: number;
  readonly operations: readonly ArithmeticOperation[];
  readonly negative: boolean;
}

/** @throws `invalid_argument` for an unknown level or operation, or a limit that is not a whole number from 1 to 999,999 */
export function arithmeticSpace({
  level = 2,
  operations = ['+', '-'],
  negative = false,
  ...limits
}: ArithmeticSpaceOptions = {}): ArithmeticSpace {
  const defaults = arithmeticLevels[level];
  if (defaults === undefined) throw complaint({ field: 'level', expected: '1, 2 or 3', got: String(level) });
  const unknown = operations.find((operation) => !arithmeticOperations.includes(operation));
  if (operations.length === 0 || unknown !== undefined) {
    const got = unknown === undefined ? 'none' : String(unknown).slice(0, 20);
    throw complaint({ field: 'operations', expected: `some of ${arithmeticOperations.join(' ')}`, got });
  }
  const { maxOperand = defaults.maxOperand, maxFactor = defaults.maxFactor } = limits;
  for (const [field, value] of Object.entries({ maxOperand, maxFactor })) {
    if (!Number.isInteger(value) || value < 1 || value > 999_999) {
      throw complaint({ field, expected: 'a whole number from 1 to 999999', got: String(value) });
    }
  }
  return { maxOperand, maxFactor, operations, negative };
}

export function arithmeticProblem(a: number, operation: ArithmeticOperation, b: number): ArithmeticProblem {
  const question = `${a}${operation}${b}=`;
  return { id: question, question, answer: String(solve(a, operation, b)), a, b, operation };
}

function solve(a: number, operation: ArithmeticOperation, b: number): number {
  switch (operation) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    default:
      return operation satisfies never;
  }
}

/** A problem of the space; operations equally often, operands uniform. */
export function drawProblem(space: ArithmeticSpace, random: Random): ArithmeticProblem {
  const operation = random.pick(space.operations);
  const limit = operation === '*' ? space.maxFactor : space.maxOperand;
  const a = random.integer(limit + 1);
  const b = random.integer(limit + 1);
  return operation === '-' && !space.negative && a < b
    ? arithmeticProblem(b, operation, a)
    : arithmeticProblem(a, operation, b);
}

/** Every problem of the space, once. */
export function* allProblems(space: ArithmeticSpace): Generator<ArithmeticProblem> {
  for (const operation of space.operations) {
    const limit = operation === '*' ? space.maxFactor : space.maxOperand;
    for (let a = 0; a <= limit; a++) {
      const last = operation === '-' && !space.negative ? a : limit;
      for (let b = 0; b <= last; b++) yield arithmeticProblem(a, operation, b);
    }
  }
}
