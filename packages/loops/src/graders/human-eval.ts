/** Rows in HumanEval's form: a prompt of code that ends in a function without a body, and a `check` of that function. */
import { complaint } from '@loopwright/protocol';
import { codeBlock } from './answers/code-block.js';
import type { UnitTests } from './unit-tests.js';

/** Named as in the data set. */
export interface HumanEvalRow {
  /** Imports and helpers, then the signature and docstring of the function. */
  readonly prompt: string;
  readonly entry_point: string;
  /** Defines `check(candidate)`. */
  readonly test: string;
}

/**
 * One test of a row, for `unitTests`: its `check` of the function. What the prompt has before the function (imports, and helpers that some checks call) is
 * the tests' own, so that a program can't replace it.
 *
 * @throws `invalid_argument` for a row without these fields, or whose prompt doesn't define the function
 * @see arXiv:2107.03374 (HumanEval)
 */
export function humanEvalTests(row: HumanEvalRow): Extract<UnitTests, { readonly type: 'statements' }> {
  const { test, entry_point: entry } = checked(row);
  return { type: 'statements', entry: [entry], setup: preamble(row), tests: [`${test}\ncheck(${entry})`] };
}

/**
 * The program in an answer to a row: its last closed block of Python, behind the imports and helpers of the prompt; where it doesn't define the function, it is
 * taken for the body that the prompt lacks. An answer without a block gives null, or is a body where `isCompletion` says that the model went on from the prompt.
 *
 * @throws `invalid_argument` as {@link humanEvalTests}
 */
export function humanEvalProgram(
  row: HumanEvalRow,
  text: string,
  { isCompletion = false }: { readonly isCompletion?: boolean } = {},
): string | null {
  const { prompt, entry_point: entry } = checked(row);
  const code = codeBlock(text, 'python') ?? (isCompletion ? text : null);
  if (code === null) return null;
  return definition(code, entry) === -1 ? prompt + code : `${preamble(row)}\n${code}`;
}

function preamble({ prompt, entry_point: entry }: HumanEvalRow): string {
  return prompt.slice(0, definition(prompt, entry));
}

/** Where a function of that name begins, not indented; −1 where none does. The name is an identifier. */
function definition(code: string, name: string): number {
  return code.search(new RegExp(`^(?:async[ \\t]+)?def[ \\t]+${name}[ \\t]*\\(`, 'm'));
}

function checked(row: HumanEvalRow): HumanEvalRow {
  for (const field of ['prompt', 'entry_point', 'test'] as const)
    if (typeof row[field] !== 'string' || row[field] === '')
      throw complaint({ field, expected: 'text', got: row[field] === '' ? 'empty text' : typeof row[field] });
  if (!/^[A-Za-z_]\w*$/.test(row.entry_point))
    throw complaint({ field: 'entry_point', expected: 'the name of a function', got: 'other text' });
  if (definition(row.prompt, row.entry_point) === -1)
    throw complaint({ field: 'prompt', expected: 'code that defines entry_point', got: 'code without that function' });
  return row;
}
