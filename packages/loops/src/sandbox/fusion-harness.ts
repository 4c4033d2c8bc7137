/** Programs whose functions are called, for a sandbox that only runs programs: the calls are part of it, the answers a file. */
import { javascriptValues } from './javascript/prelude.js';
import { pythonRunner } from './python/runner.js';
import type { CrossingValue } from './values.js';

export interface HarnessCall {
  readonly entry: string;
  readonly args: readonly CrossingValue[];
}

export interface HarnessOptions {
  readonly code: string;
  readonly calls: readonly HarnessCall[];
  /** File that gets a line of JSON per call. */
  readonly answers: string;
}

/** Python that runs the program as `__main__`, then makes the calls. Ends with 1 where the program fails. */
export function pythonHarness({ code, calls, answers }: HarnessOptions): string {
  const task = JSON.stringify({ type: 'run', code, calls });
  // JSON's text, as a literal of Python: ASCII alone, and escapes that both read alike.
  return `${pythonRunner}
def _answer(text):
    with open(${ascii(answers)}, 'a') as file: file.write(text + '\\n')
if json.loads(main(${ascii(task)}, None, _answer))['status'] != 'ok': sys.exit(1)
`;
}

/** The program and then its calls, in one script. */
export function nodeHarness({ code, calls, answers }: HarnessOptions): string {
  const made = calls.map(({ entry, args }) => `[() => ${entry}, ${ascii(JSON.stringify(args))}]`).join(', ');
  return `${code}
;(async () => {
  ${javascriptValues}
  for (const [target, args] of [${made}]) {
    let told;
    try { told = { value: encode(await target()(...decode(JSON.parse(args)))) }; }
    catch (error) { told = { error: { type: String(error && error.name), message: String(error && error.message) } }; }
    require('node:fs').appendFileSync(${ascii(answers)}, JSON.stringify({ type: 'called', ...told }) + '\\n');
  }
})();
`;
}

function ascii(text: string): string {
  return JSON.stringify(text).replace(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
