/** The problems that a run met, each once: so that its answers can be graded again, and that what it trained on can be told from what it didn't. */
import { join } from 'node:path';
import * as z from 'zod';
import { promptKey } from '../data/prompt-key.js';
import { contentOf, type JsonValue } from '../data/row.js';
import { contentId } from '../data/row-hash.js';
import { JsonlFile, readJsonl } from './jsonl-file.js';

export const problemsName = 'problems.jsonl';

const metProblem = z.object({
  /** `train`, `validation`, `fixed`, or the name under which `openRun` was given the data. */
  use: z.string(),
  /** Of the prompt; case, white space and Unicode form don't count. */
  prompt: z.string(),
  /** Of a problem of rollouts: its id, and the first step that it was met at. */
  id: z.string().optional(),
  step: z.number().int().min(0).optional(),
  /** The problem itself, where samples are kept and JSON can hold it. Content. */
  problem: z.record(z.string(), z.json()).optional(),
});

/** A problem, or a row of data, that a run met. */
export type MetProblem = Readonly<z.infer<typeof metProblem>>;

/** Lines of one write at most, so that data of millions of rows need no text as long. */
const linesAtOnce = 20_000;

export class MetProblems {
  readonly #path: string;
  readonly #seen: Set<string>;
  #file: JsonlFile | undefined;

  private constructor(path: string, seen: Set<string>) {
    this.#path = path;
    this.#seen = seen;
  }

  /** Goes on after those that the folder has; see `cutRun`. */
  static async open(folder: string): Promise<MetProblems> {
    const path = join(folder, problemsName);
    const seen = new Set<string>();
    for await (const met of readMet(folder)) seen.add(keyOf(met));
    return new MetProblems(path, seen);
  }

  /** Adds those that weren't met before. @throws write errors */
  async add(
    problems: readonly { readonly id: string }[],
    { step, use, isKept }: { readonly step: number; readonly use: string; readonly isKept: boolean },
  ): Promise<void> {
    const met = problems.map(
      (problem): MetProblem => ({
        ...{ use, id: problem.id, step, prompt: problemHash(problem) },
        ...(isKept && isJson(problem) ? { problem } : {}),
      }),
    );
    await this.#append(met);
  }

  /** Adds rows of data by the hashes of their prompts. @throws write errors */
  async addRows(prompts: Readonly<Record<string, readonly string[]>>): Promise<void> {
    await this.#append(Object.entries(prompts).flatMap(([use, hashes]) => hashes.map((prompt) => ({ use, prompt }))));
  }

  async #append(met: readonly MetProblem[]): Promise<void> {
    const fresh = met.filter((each) => {
      const key = keyOf(each);
      if (this.#seen.has(key)) return false;
      this.#seen.add(key);
      return true;
    });
    if (fresh.length === 0) return;
    this.#file ??= await JsonlFile.open(this.#path);
    for (let at = 0; at < fresh.length; at += linesAtOnce) await this.#file.append(fresh.slice(at, at + linesAtOnce));
  }

  async close(): Promise<void> {
    await this.#file?.close();
  }
}

/** What a run met, in order. Lines that can't be read are left out. */
export async function* readMet(folder: string): AsyncGenerator<MetProblem> {
  for await (const line of readJsonl(join(folder, problemsName))) {
    const met = 'value' in line ? checkMet(line.value) : undefined;
    if (met !== undefined) yield met;
  }
}

/** @returns undefined for a line that can't be read */
export function checkMet(value: unknown): MetProblem | undefined {
  return metProblem.safeParse(value).data;
}

/** The same for problems and rows of one prompt, however they are written; of what has no prompt, that of its whole content. 32 hexadecimal digits. */
export function promptHash(row: unknown): string {
  const text = JSON.stringify(contentOf(row)) as string | undefined; // undefined of a function
  const json = (text === undefined ? null : JSON.parse(text)) as JsonValue; // true: of JSON
  const isObject = typeof json === 'object' && json !== null && !Array.isArray(json);
  const key = isObject
    ? promptKey({ id: '', at: { file: '', line: 1 }, row: json as Readonly<Record<string, JsonValue>> }, {}) // true: no list
    : undefined;
  return contentId(key ?? json);
}

/** Of a problem, which JSON need not hold: by its question. */
export function problemHash(problem: { readonly id: string; readonly question?: unknown }): string {
  const { id, question } = problem;
  if (typeof question === 'string' && question.trim() !== '') return promptHash({ question });
  return promptHash(isJson(problem) ? problem : { question: id });
}

function keyOf({ use, id, prompt }: MetProblem): string {
  return `${use} ${id ?? ''} ${prompt}`;
}

/** Whether JSON holds all of it. */
function isJson(value: unknown): value is Record<string, JsonValue> {
  const test = (each: unknown, depth: number): boolean => {
    if (depth > 32) return false;
    if (each === null || typeof each === 'string' || typeof each === 'boolean') return true;
    if (typeof each === 'number') return Number.isFinite(each);
    if (typeof each !== 'object') return false;
    if (Array.isArray(each)) return each.every((item) => test(item, depth + 1));
    const prototype: unknown = Object.getPrototypeOf(each);
    if (prototype !== Object.prototype && prototype !== null) return false;
    return Object.values(each).every((member) => member === undefined || test(member, depth + 1));
  };
  return typeof value === 'object' && !Array.isArray(value) && test(value, 0);
}
