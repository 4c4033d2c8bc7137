/** Lines between a sandbox and its child. What children send is the program's word: parsed with care, believed in nothing. */
import type { CrossingValue } from './values.js';

interface Prepared {
  /** Base64 by path. */
  readonly files: Readonly<Record<string, string>>;
  readonly outputBytes: number;
}

export interface RunTask extends Prepared {
  readonly type: 'run';
  readonly code: string;
  readonly stdin: string;
  readonly calls: readonly { readonly entry: string; readonly args: readonly CrossingValue[] }[];
}

export interface ServeTask extends Prepared {
  readonly type: 'serve';
  readonly code: string;
  readonly stdin: string;
}

export interface JudgeTask extends Prepared {
  readonly type: 'judge';
  readonly setup: string;
  readonly tests: readonly string[];
  readonly entry: readonly string[];
}

export type Task = RunTask | ServeTask | JudgeTask;
