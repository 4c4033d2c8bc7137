/** The task on the made problems, for the grader gate: programs that are right and wrong, with and without the tool. */
import { createPythonSandbox, defineTask, type LabelledCompletion } from 'loopwright';
import { config } from './config.js';
import { codeEnvironment } from './environment.js';
import { type CodeProblem, codeProblems, madeProblems, madeRows } from './problems.js';

const { problems } = await codeProblems(madeProblems());
const bodies = madeRows().map(({ canonical_solution: body }) => String(body));

/** Open as long as the process: commands take the task and end. */
export const sandbox = await createPythonSandbox({ workers: 2, timeoutMs: 20_000 });

const { maxTurns, maxTokens, groupSize, groupsPerStep, steps, learningRate, rank } = config;
export const task = defineTask({
  name: 'code',
  environment: codeEnvironment(problems, sandbox),
  train: problems.filter((_, i) => i % 5 !== 0),
  heldOut: problems.filter((_, i) => i % 5 === 0),
  model: 'HuggingFaceTB/SmolLM2-135M-Instruct',
  cases: labelled(problems[0]!, bodies[0]!), // there are thirty
  settings: { maxTurns, maxTokens, groupSize, groupsPerStep, steps, learningRate, rank },
});

function labelled(problem: CodeProblem, body: string): LabelledCompletion<CodeProblem>[] {
  const code = `${problem.row?.prompt}${body}`;
  const fenced = (text: string): string => `\`\`\`python\n${text}\n\`\`\``;
  const check = (text: string) => ({ text: '', toolCalls: [{ name: 'check_solution', arguments: { code: text } }] });
  const good = {
    'whole function': fenced(code),
    'body alone': fenced(body),
    'checked first': [check(code), { text: fenced(code) }],
    'mended after the check': [check('oh'), { text: `So:\n${fenced(code)}` }],
  };
  const bad = {
    'without a block': code,
    'another result': fenced(code.replace('return x', 'return 1 + x')),
    'does not parse': fenced(`${code} (`),
    'checked, and then no answer': [check(code), { text: 'It passes.' }],
    'checks twice': [check(code), check(code)],
  };
  return [
    ...Object.entries(good).map(([kind, completion]) => ({ problem, label: 'good' as const, completion, kind })),
    ...Object.entries(bad).map(([kind, completion]) => ({ problem, label: 'bad' as const, completion, kind })),
  ];
}
