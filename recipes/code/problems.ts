/** Problems of programs: rows of HumanEval, rows of DeepCoder, or small ones in HumanEval's form that are made by rule. */
import {
  type DataRow,
  type Dataset,
  datasetOf,
  type HumanEvalRow,
  humanEvalTests,
  type JsonRow,
  type Problem,
  textSource,
  type UnitTests,
} from 'loopwright';

export interface CodeProblem extends Problem {
  readonly tests: UnitTests;
  /** Of HumanEval: its prompt belongs to the program. */
  readonly row?: HumanEvalRow;
}

/** All problems of a data set that have tests which can be run; the others are counted. */
export async function codeProblems(data: Dataset): Promise<{ problems: CodeProblem[]; left: number }> {
  const problems: CodeProblem[] = [];
  let left = 0;
  for await (const row of data) {
    const problem = 'entry_point' in row.row ? humanEvalProblem(row) : deepCoderProblem(row);
    if (problem === undefined) left += 1;
    else problems.push(problem);
  }
  return { problems, left };
}

function humanEvalProblem({ id, row }: DataRow): CodeProblem {
  const read = row as unknown as HumanEvalRow; // humanEvalTests checks every field
  const tests = humanEvalTests(read);
  return { id, question: `Complete this function.\n\`\`\`python\n${read.prompt}\`\`\``, answer: '', tests, row: read };
}

/**
 * A row of DeepCoder: `problem`, and `tests` as JSON in a text. Read are programs with input and output (a list of cases, or the lists `inputs` and `outputs`), and calls of a
 * function (`fn_name`). Methods of a class (`functional`) are not: the sandbox calls functions.
 */
export function deepCoderProblem({ id, row }: DataRow): CodeProblem | undefined {
  if (typeof row.problem !== 'string') return undefined;
  const tests = testsOf(typeof row.tests === 'string' ? parsed(row.tests) : row.tests);
  return tests === undefined ? undefined : { id, question: row.problem, answer: '', tests };
}

function testsOf(given: unknown): UnitTests | undefined {
  const { inputs, outputs, fn_name: name } = isObject(given) ? given : {};
  const listed =
    Array.isArray(inputs) && Array.isArray(outputs)
      ? inputs.map((input: unknown, i) => ({ input, output: outputs[i] as unknown, fn_name: name }))
      : given;
  if (!Array.isArray(listed) || listed.length === 0) return undefined;
  const cases = listed.filter(isObject);
  if (cases.length < listed.length) return undefined;
  const entries = cases.map(({ fn_name: entry }) => entry).filter((entry) => typeof entry === 'string' && entry !== '');
  if (entries.length === cases.length) {
    if (!cases.every(({ input }) => Array.isArray(input))) return undefined;
    return {
      type: 'calls',
      // true: of JSON, which holds only values that a call can have
      cases: cases.map(({ input, output }, i) => ({ entry: entries[i], args: input, expected: output })) as Extract<
        UnitTests,
        { type: 'calls' }
      >['cases'],
    };
  }
  const texts = cases.flatMap(({ input, output, testtype }) =>
    typeof input === 'string' && typeof output === 'string' && testtype !== 'functional'
      ? [{ stdin: input, stdout: output }]
      : [],
  );
  return texts.length === cases.length ? { type: 'stdio', cases: texts } : undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // the row is left out, and counted
  }
}

/** Functions of one line, in HumanEval's form, each with the body that solves it. */
export function madeRows(): readonly JsonRow[] {
  const operations = [
    ['plus', '+'],
    ['minus', '-'],
    ['times', '*'],
  ] as const;
  return operations.flatMap(([word, sign]) =>
    Array.from({ length: 10 }, (_, i) => {
      const entry = `${word}_${i + 2}`;
      const cases = [0, 1, 7].map((x) => `    assert candidate(${x}) == ${x} ${sign} ${i + 2}`);
      return {
        prompt: `def ${entry}(x: int) -> int:\n    """ Return x ${word} ${i + 2}. """\n`,
        entry_point: entry,
        canonical_solution: `    return x ${sign} ${i + 2}\n`,
        test: `def check(candidate):\n${cases.join('\n')}\n`,
      };
    }),
  );
}

/** They as a data set. */
export function madeProblems(): Dataset {
  const text = madeRows()
    .map((row) => `${JSON.stringify(row)}\n`)
    .join('');
  return datasetOf([textSource(text, { file: 'made functions' })]);
}
