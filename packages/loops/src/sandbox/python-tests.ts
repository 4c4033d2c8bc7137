/** Tests that are Python statements: in a process of their own, the program in another, values between. */
import { complaint, LoopwrightError } from '@loopwright/protocol';
import { errorOf } from './call-result.js';
import { check, checkName, checkProgram, checkText } from './checks.js';
import type { SandboxChild } from './child-process.js';
import { type Ending, Execution, type Message } from './execution.js';
import { base64Files, ProcessSandbox } from './process-sandbox.js';
import { outcomeOf } from './results.js';
import type { ProgramError, TestedProgram, TestedResult, TestingSandbox, TestResult } from './sandbox.js';

export class PythonProcesses extends ProcessSandbox implements TestingSandbox {
  async runTests(program: TestedProgram): Promise<TestedResult> {
    checkProgram(program, this.limits.timeoutMs);
    checkText('setup', program.setup ?? '');
    check('tests', 'at least one', program.tests.length > 0, 'none');
    for (const [i, test] of program.tests.entries()) checkText(`tests[${i}]`, test);
    for (const [i, name] of program.entry.entries()) checkName(`entry[${i}]`, name);
    if (this.pool.size < 2)
      throw complaint({
        field: 'workers',
        expected: 'at least 2: the tests run in a process of their own',
        got: String(this.pool.size),
        remedy: 'make the sandbox with workers: 2',
      });
    return await this.withChildren(2, program.signal, async ([tested, judge], queueMs) => {
      const { serving, results, ending } = await this.#judge(program, tested!, judge!);
      const output = { ...tested!.output(), durationMs: serving.durationMs, queueMs };
      const outcome = outcomeOf(ending, true, output.stderr);
      const unreached: ProgramError =
        outcome.status === 'error' ? outcome.error : { type: outcome.status, message: 'not reached' };
      return {
        ...output,
        status: outcome.status,
        results: program.tests.map((_, i) => results[i] ?? { status: 'failed', error: unreached }),
      };
    });
  }

  async #judge(
    program: TestedProgram,
    tested: SandboxChild,
    judge: SandboxChild,
  ): Promise<{ serving: Execution; results: readonly (TestResult | undefined)[]; ending: Ending }> {
    const { code, setup = '', tests, entry, timeoutMs = this.limits.timeoutMs, signal } = program;
    const results: (TestResult | undefined)[] = [];
    const shared = { ...this.watched(signal), timeoutMs };
    const prepared = { stdin: '', outputBytes: this.limits.outputBytes };
    /** Whether it is the program that is waited for. */
    let isAsked = true;
    let judging: Execution | undefined;

    const onTestMessage = (message: Message): void => {
      if (message.type === 'question') {
        isAsked = true;
        tested.send(oneLine(message.payload));
      } else if (message.type === 'tested' && typeof message.index === 'number') {
        results[message.index] =
          message.status === 'passed' ? { status: 'passed' } : { status: 'failed', error: errorOf(message.error) };
      }
    };
    const beginTests = (): Execution => {
      isAsked = false;
      const task = { type: 'judge', setup, tests, entry, files: {}, ...prepared } as const;
      // The program's own deadline ends both, so the tests' is only for tests that never ask.
      const execution = new Execution({ ...shared, child: judge, task, onMessage: onTestMessage });
      void execution.ending.then(
        () => serving.stop(),
        () => serving.stop(),
      );
      return execution;
    };
    const serving = new Execution({
      ...shared,
      child: tested,
      task: { type: 'serve', code, files: base64Files(program.files), ...prepared },
      onMessage: (message) => {
        if (message.type === 'serving' && judging === undefined) judging = beginTests();
        else if (message.type === 'answer' && isAsked && judging !== undefined) {
          isAsked = false;
          judge.send(oneLine(message.payload));
        }
      },
    });
    const ending = await serving.ending;
    const wasAsked = isAsked;
    if (judging === undefined) return { serving, results, ending };
    judging.stop();
    const judged = await judging.ending;
    if (judged.type === 'answered' && judged.message.type === 'unfit') throw unfit(judged.message);
    if (judged.type === 'answered')
      return { serving, results, ending: { type: 'answered', message: { type: 'done', status: 'ok' } } };
    if (ending.type === 'stopped' || (ending.type === 'timeout' && !wasAsked)) throw unfit(undefined);
    return { serving, results, ending };
  }
}

function oneLine(payload: unknown): string {
  return String(payload).replaceAll('\n', ' ');
}

/** Tests that can't judge: their author's fault, and no program's. */
function unfit(message: Message | undefined): LoopwrightError {
  const got = message === undefined ? 'tests that never end or that ended their process' : errorOf(message.error).type;
  return new LoopwrightError({
    code: 'sandbox_failed',
    message: `tests: the tests themselves do not run (${got})`,
    details: {
      field: 'tests',
      expected: 'a setup that runs, and statements that parse and end',
      got,
      remedy: 'mend the tests of this problem, or leave it out',
    },
    cause: message === undefined ? undefined : new Error(`${got}: ${errorOf(message.error).message}`),
  });
}
