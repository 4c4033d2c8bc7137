/** Episodes of two turns: a program may be checked once by a tool, then the answer is judged by all tests. */
import {
  createGrader,
  type EpisodeEnvironment,
  type Grade,
  humanEvalProgram,
  runTools,
  type TestingSandbox,
  type Tool,
  unitTests,
} from 'loopwright';
import type { CodeProblem } from './problems.js';

const instruction =
  'You may check a program once with the tool check_solution. Then answer with the whole program in a code block of Python.';

/** What an answer without a code block loses. */
export const withoutBlock = 0.1;

export function codeEnvironment(
  train: readonly CodeProblem[],
  sandbox: TestingSandbox,
): EpisodeEnvironment<CodeProblem> {
  const shared = { sandbox, tests: ({ tests }: CodeProblem) => tests };
  const ofWhole = createGrader<CodeProblem>({ components: [unitTests(shared)] });
  const ofHumanEval = createGrader<CodeProblem>({
    components: [unitTests({ ...shared, program: ({ problem, text }) => humanEvalProgram(problem.row!, text) })], // only rows with one come here
  });
  /** 1 when all tests pass, else 0; without a code block 0.1 less. */
  async function grade(problem: CodeProblem, text: string, signal: AbortSignal): Promise<Grade> {
    const graded = await (problem.row === undefined ? ofWhole : ofHumanEval)(
      { problem, text, stopReason: 'stop' },
      { signal },
    );
    return graded.status === 'unparsed' ? { ...graded, reward: graded.reward - withoutBlock } : graded;
  }
  const checkOf = (problem: CodeProblem): Tool => ({
    definition,
    run: async ({ code }, signal) => {
      if (typeof code !== 'string') throw new TypeError('code is the program, as a text');
      const graded = await grade(problem, `\`\`\`python\n${code}\n\`\`\``, signal);
      if ('error' in graded) throw graded.error;
      const [tested] = graded.components ?? [];
      return graded.reward >= 1
        ? 'All tests pass.'
        : tested?.status === 'ok'
          ? (tested.trace ?? 'Tests fail.')
          : 'Tests fail.';
    },
  });
  return {
    name: 'code',
    tools: [definition],
    draw: (random) => train[random.integer(train.length)]!, // in range
    begin: (problem, { signal }) => ({
      messages: [{ role: 'user', content: `${problem.question}\n\n${instruction}` }],
      async respond(turn) {
        const isCheck = turn.index === 0 && turn.toolCalls.length + turn.brokenCalls.length > 0;
        if (isCheck) return { messages: (await runTools(turn, [checkOf(problem)], signal)).messages };
        return { grade: await grade(problem, turn.text, signal) };
      },
      unfinished: () => ({ status: 'unparsed', reward: -withoutBlock, reason: 'no room for an answer' }),
    }),
  };
}

const definition: Tool['definition'] = {
  type: 'function',
  function: {
    name: 'check_solution',
    description: 'Runs the program against the tests of the problem.',
    parameters: { type: 'object', properties: { code: { type: 'string' } }, required: ['code'] },
  },
};
