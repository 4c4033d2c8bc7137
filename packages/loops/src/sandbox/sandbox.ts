/** What a sandbox is: programs of others in, what they printed and returned out. Judging is done outside, by those who asked. */
import type { SandboxValue } from './values.js';

/** A call of a function that the program defines. */
export interface SandboxCall {
  /** Name of the function in the program's global scope; `Solution().solve` style paths aren't names. */
  readonly entry: string;
  readonly args: readonly SandboxValue[];
}

export interface SandboxProgram {
  /** The program's source. It may find out what it will be called with, and never what is expected. */
  readonly code: string;
  /** What it reads from standard input; default nothing. */
  readonly stdin?: string;
  /** Files of the task by relative path, text or bytes; they lie in its working directory, which is in memory. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  /** Made one after another when the program has run to its end; default none. */
  readonly calls?: readonly SandboxCall[];
  /** From the program's start to its last answer; at most, and by default, the sandbox's. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** What a program failed with, in its own words: content, and not for logs. */
export interface ProgramError {
  /** Name of the exception's class, such as `ValueError`. */
  readonly type: string;
  readonly message: string;
}

export type CallResult =
  | { readonly status: 'ok'; readonly value: SandboxValue }
  /** The function threw, or returned what can't cross as a value. */
  | { readonly status: 'error'; readonly error: ProgramError };

export interface SandboxOutput {
  /** As printed, cut at the sandbox's `outputBytes`. */
  readonly stdout: string;
  readonly stderr: string;
  /** Whether more was printed than is here. */
  readonly isCut: boolean;
  /** Of the calls that were answered, in order: of all when the status is `ok`, else of those before the end. */
  readonly results: readonly CallResult[];
  /** From the program's start to its end, without the wait for a place. */
  readonly durationMs: number;
  /** The wait for a place. */
  readonly queueMs: number;
}

/** How a program ended. Everything in it is the program's own word: compare it outside, with what it was never told. */
export type SandboxResult = SandboxOutput &
  (
    | { readonly status: 'ok' /** Of each call, in order. */; readonly results: readonly CallResult[] }
    /** An exception that nothing caught, an exit code other than 0, or source that doesn't parse. */
    | { readonly status: 'error'; readonly error: ProgramError }
    /** Still running at its deadline, and killed. */
    | { readonly status: 'timeout' }
    /** Wanted more memory than it may have. */
    | { readonly status: 'out_of_memory' }
    /** Its process ended without an answer, or was ended for flooding. */
    | { readonly status: 'killed'; readonly reason: string }
  );

/**
 * Runs programs of others, each in a place of its own that nothing of it survives.
 *
 * What a program does wrong is a result. `run` rejects only where the sandbox is at fault (`sandbox_failed`), the request is
 * (`invalid_argument`), it was closed (`disposed`), or the caller's signal says so.
 */
export interface Sandbox extends AsyncDisposable {
  readonly language: 'python' | 'javascript';
  run(program: SandboxProgram): Promise<SandboxResult>;
  /** Ends what runs; harmless when done twice. */
  close(): Promise<void>;
}

/** Statements of a test suite, and the program that they are about. */
export interface TestedProgram {
  readonly code: string;
  /** The names that the statements take from the program. Everything else they use is theirs. */
  readonly entry: readonly string[];
  /** Runs before the statements, in their scope: imports, helpers. */
  readonly setup?: string;
  /** Each passes when it raises nothing. */
  readonly tests: readonly string[];
  readonly files?: NonNullable<SandboxProgram['files']>;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export type TestResult =
  | { readonly status: 'passed' }
  /** Raised, or never reached because the program ended before. */
  | { readonly status: 'failed'; readonly error: ProgramError };

export type TestedResult = Omit<SandboxOutput, 'results'> & {
  /** How the program ended; `ok` also where tests failed. */
  readonly status: SandboxResult['status'];
  /** Of each statement, in order. */
  readonly results: readonly TestResult[];
};

/** A sandbox that also runs tests that are statements, such as `assert f(1) == 2`. */
export interface TestingSandbox extends Sandbox {
  /**
   * The statements run in a process of their own: what they take from the program are stubs, whose calls cross over to the
   * program's process and come back as plain values. So the program can neither see nor change what judges it.
   *
   * @throws `sandbox_failed` also where the tests themselves can't run: setup that raises, statements that don't parse or
   *   still compute at the deadline while no call is under way
   */
  runTests(program: TestedProgram): Promise<TestedResult>;
}
