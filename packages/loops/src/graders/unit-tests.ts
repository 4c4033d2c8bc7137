/** Programs that are right when they pass their tests, in a sandbox. */
import { complaint } from '@loopwright/protocol';
import type { Answer, Problem } from '../environments/environment.js';
import { equalValues } from '../sandbox/equal-values.js';
import type { Sandbox, SandboxCall, SandboxProgram, TestingSandbox } from '../sandbox/sandbox.js';
import type { SandboxValue } from '../sandbox/values.js';
import { codeBlock } from './answers/code-block.js';
import { type Component, type ComponentOptions, labelled, type Score } from './component.js';

/** The tests of a problem. None of what is expected ever enters the program's process. */
export type UnitTests =
  /** The program is run anew for each; right when it ends well and prints the same, but for blanks at ends of lines and of all. */
  | {
      readonly type: 'stdio';
      readonly cases: readonly { readonly stdin: string; readonly stdout: string }[];
    }
  /** Functions are called one after another in one run; right when they return an equal value (see {@link equalValues}). */
  | {
      readonly type: 'calls';
      readonly cases: readonly (SandboxCall & { readonly expected: SandboxValue })[];
    }
  /** Python statements that raise when the program is wrong; see {@link TestingSandbox.runTests}. */
  | {
      readonly type: 'statements';
      readonly tests: readonly string[];
      readonly entry: readonly string[];
      readonly setup?: string;
    };

export interface UnitTestsOptions<P extends Problem> extends ComponentOptions {
  /** Stays the caller's: close it after the run. */
  readonly sandbox: Sandbox | TestingSandbox;
  readonly tests: (problem: P) => UnitTests;
  /** The program in an answer, or null where there is none; default: the last complete code block of the sandbox's language. */
  readonly program?: (answer: Answer<P>) => string | null;
  readonly files?: (problem: P) => NonNullable<SandboxProgram['files']>;
  /** `all` (the default): 1 when all pass, else 0. `share`: the share that passes. */
  readonly score?: 'all' | 'share';
  /** Of one run; default the sandbox's. */
  readonly timeoutMs?: number;
}

/**
 * Runs the program of an answer against the tests of its problem.
 *
 * What the program does wrong (raising, printing a verdict, never ending) is a failed test. A sandbox that can't run it, and tests that
 * can't run, are a `grader_error`. There is no time limit of the component: runs have theirs, waits for a place have none.
 */
export function unitTests<P extends Problem = Problem>(options: UnitTestsOptions<P>): Component<P> {
  const { sandbox, tests, files, score = 'all', timeoutMs } = options;
  const program = options.program ?? ((answer) => codeBlock(answer.text, sandbox.language));
  return {
    ...labelled('unit_tests', options),
    timeoutMs: Number.POSITIVE_INFINITY,
    score: async (answer, { signal }) => {
      const code = program(answer);
      if (code === null) return { status: 'unparsed', reason: `no complete code block of ${sandbox.language}` };
      const suite = tests(answer.problem);
      const run: Run = {
        code,
        signal,
        files: files?.(answer.problem) ?? {},
        ...(timeoutMs === undefined ? {} : { timeoutMs }),
      };
      return scoreOf(await verdicts({ sandbox, suite, run, stopAtFirst: score === 'all' }), score);
    },
  };
}

type Run = Pick<SandboxProgram, 'code' | 'signal' | 'files' | 'timeoutMs'> & { readonly files: object };

interface Verdicts {
  readonly count: number;
  readonly passed: number;
  /** What was wrong first, with what the program gave: content. */
  readonly firstFailure?: string;
}

interface Judged {
  readonly sandbox: Sandbox | TestingSandbox;
  readonly suite: UnitTests;
  readonly run: Run;
  readonly stopAtFirst: boolean;
}

async function verdicts({ sandbox, suite, run, stopAtFirst }: Judged): Promise<Verdicts> {
  switch (suite.type) {
    case 'stdio':
      return await judgeOutput({ sandbox, cases: some(suite.cases), run, stopAtFirst });
    case 'calls': {
      const cases = some(suite.cases);
      const result = await sandbox.run({ ...run, calls: cases.map(({ entry, args }) => ({ entry, args })) });
      return counted(
        cases.map(({ entry, expected }, i) => {
          const got = result.results[i];
          if (got === undefined) return `${entry}: ${ended(result)}`;
          if (got.status === 'error') return `${entry}: ${got.error.type}: ${got.error.message}`;
          return equalValues(expected, got.value) ? undefined : `${entry}: another value than expected`;
        }),
      );
    }
    case 'statements': {
      if (!('runTests' in sandbox))
        throw complaint({
          field: 'sandbox',
          expected: 'one that runs statements as tests (createPythonSandbox)',
          got: `one of ${sandbox.language} that does not`,
          remedy: 'use it, or give the tests as calls or as input and output',
        });
      const { setup, entry } = suite;
      const given = { ...run, entry, tests: some(suite.tests), ...(setup === undefined ? {} : { setup }) };
      const { results } = await sandbox.runTests(given);
      return counted(
        results.map((each) => (each.status === 'passed' ? undefined : `${each.error.type}: ${each.error.message}`)),
      );
    }
  }
}

async function judgeOutput({
  sandbox,
  cases,
  run,
  stopAtFirst,
}: Omit<Judged, 'suite'> & {
  readonly cases: readonly { readonly stdin: string; readonly stdout: string }[];
}): Promise<Verdicts> {
  const failures: (string | undefined)[] = [];
  for (const { stdin, stdout } of cases) {
    const result = await sandbox.run({ ...run, stdin });
    const isRight = result.status === 'ok' && !result.isCut && shown(result.stdout) === shown(stdout);
    failures.push(isRight ? undefined : result.status === 'ok' ? 'another output than expected' : ended(result));
    if (!isRight && stopAtFirst) break;
  }
  return { ...counted(failures), count: cases.length };
}

/** Blanks at the end of lines, and at the end of all, are no difference. */
function shown(output: string): string {
  return output
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
    .trimEnd();
}

function ended(result: Awaited<ReturnType<Sandbox['run']>>): string {
  if (result.status === 'error') return `${result.error.type}: ${result.error.message}`;
  return result.status === 'killed' ? `killed: ${result.reason}` : result.status;
}

/** @throws `invalid_argument` for none: a problem without tests is a fault of the data */
function some<T>(cases: readonly T[]): readonly T[] {
  if (cases.length > 0) return cases;
  throw complaint({
    field: 'tests(problem)',
    expected: 'at least one test',
    got: 'none',
    remedy: 'leave out the problem, or give it tests',
  });
}

function counted(failures: readonly (string | undefined)[]): Verdicts {
  const wrong = failures.filter((failure) => failure !== undefined);
  const [firstFailure] = wrong;
  return {
    count: failures.length,
    passed: failures.length - wrong.length,
    ...(firstFailure === undefined ? {} : { firstFailure }),
  };
}

function scoreOf({ count, passed, firstFailure }: Verdicts, by: 'all' | 'share'): Score {
  const trace = `${passed} of ${count} passed${firstFailure === undefined ? '' : `; first failure: ${firstFailure}`}`;
  return { status: 'ok', score: by === 'share' ? passed / count : Number(passed === count), trace };
}
