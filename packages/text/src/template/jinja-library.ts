/** The template library behind types of our own: its declarations import without file endings and so collapse to `any`. */
import * as library from '@huggingface/jinja';

/** A value while a template runs. */
export interface RuntimeValue {
  readonly type: string;
  readonly value: unknown;
  /** How a number was written, where the value can't tell. */
  readonly exact?: string;
}

/** A node of a parsed template, as far as we look at it. */
export interface Node {
  readonly type: string;
  readonly value?: unknown;
  readonly filter?: Node;
  readonly operand?: Node;
  readonly callee?: Node;
  readonly args?: readonly Node[];
  readonly key?: Node;
  readonly object?: Node;
  readonly property?: Node;
  readonly computed?: boolean;
  readonly left?: Node;
  readonly right?: Node;
  readonly operator?: { readonly value?: unknown };
  readonly iterable?: Node;
  readonly body?: readonly Node[];
}

/** Variables of a scope. */
export interface Environment {
  /** Declares a variable and returns its wrapped value. */
  set(name: string, value: unknown): RuntimeValue;
  setVariable(name: string, value: RuntimeValue): RuntimeValue;
}

/** Walks the tree; every node goes through `evaluate`. */
export interface Interpreter {
  run(program: Node): RuntimeValue;
  evaluate(node: Node | undefined, environment: Environment): RuntimeValue;
}

interface Library {
  readonly tokenize: (source: string, options: { trim_blocks: boolean; lstrip_blocks: boolean }) => readonly unknown[];
  readonly parse: (tokens: readonly unknown[]) => Node;
  readonly Environment: new () => Environment;
  readonly Interpreter: new (environment: Environment) => Interpreter;
}

/** True of version 0.5 of the library; the rendering tests fail should it change. */
export const jinja = library as unknown as Library;
