/** SandboxFusion by HTTP: programs run where a server of it runs them. */
import { complaint } from '@loopwright/protocol';
import { callResultOf } from './call-result.js';
import { checkProgram } from './checks.js';
import { serverFailed } from './fusion-failure.js';
import { nodeHarness, pythonHarness } from './fusion-harness.js';
import { base64Text, type FusionAnswer, fusionAnswer } from './fusion-wire.js';
import type { CallResult, Sandbox, SandboxProgram, SandboxResult } from './sandbox.js';
import { encodeValue } from './values.js';

export interface SandboxFusionOptions {
  /** Where it listens, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  /** Default `python`; JavaScript is run by its Node. */
  readonly language?: Sandbox['language'];
  /** Of a program; default 10 000. */
  readonly timeoutMs?: number;
  /** What a program may take; default: no limit of ours. */
  readonly memoryMiB?: number;
  /** Requests at a time; default 16. */
  readonly concurrency?: number;
  /** Kept of each of stdout and stderr; default 65 536 characters. */
  readonly outputBytes?: number;
  /** Sent with each request, for a gateway that wants a key. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly fetch?: typeof globalThis.fetch;
}

/** What a server may take beyond the program's own time: its queue, its start. */
const patienceMs = 120_000;

/**
 * The sandbox of a SandboxFusion server (`POST /run_code`). How programs are kept from each other and from the network is that
 * server's configuration; results are judged here all the same, from what came back.
 *
 * A server that can't be reached, refuses or reports an error of its own is `sandbox_failed`. Requests aren't repeated.
 *
 * @throws `invalid_argument`
 */
export function sandboxFusion(options: SandboxFusionOptions): Sandbox {
  const { language = 'python', timeoutMs: maxTimeoutMs = 10_000, concurrency = 16, outputBytes = 65_536 } = options;
  const endpoint = endpointOf(options.url);
  if (!Number.isInteger(concurrency) || concurrency < 1)
    throw complaint({ field: 'concurrency', expected: 'a whole number above 0', got: String(concurrency) });
  const closing = new AbortController();
  const places = new Places(concurrency);
  const run = async (program: SandboxProgram): Promise<SandboxResult> => {
    checkProgram(program, maxTimeoutMs);
    const { timeoutMs = maxTimeoutMs, calls = [], signal } = program;
    const answers = `answers-${crypto.randomUUID()}.jsonl`;
    const body = JSON.stringify({
      ...requestOf(program, language, answers),
      ...limitsOf(timeoutMs, options.memoryMiB),
    });
    const stop = AbortSignal.any([closing.signal, ...(signal === undefined ? [] : [signal])]);
    const askedAt = performance.now();
    await places.take(stop);
    const queueMs = performance.now() - askedAt;
    try {
      const deadline = AbortSignal.timeout(timeoutMs + patienceMs);
      const answer = await fusionAnswer({ endpoint, body, signal: AbortSignal.any([stop, deadline]), options }).catch(
        (error: unknown) => {
          throw stop.aborted ? stop.reason : error;
        },
      );
      return resultOf({ answer, calls: calls.length, answers, outputBytes, queueMs });
    } finally {
      places.give();
    }
  };
  const close = async (): Promise<void> =>
    closing.abort(
      complaint({ code: 'disposed', field: 'sandbox', expected: 'an open sandbox', got: 'one that was closed' }),
    );
  return { language, run, close, [Symbol.asyncDispose]: close };
}

function endpointOf(url: string): string {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw complaint({ field: 'url', expected: 'an http address', got: 'another text' });
  return new URL('run_code', url.endsWith('/') ? url : `${url}/`).href;
}

function limitsOf(timeoutMs: number, memoryMiB: number | undefined): object {
  return { run_timeout: timeoutMs / 1000, ...(memoryMiB === undefined ? {} : { memory_limit_MB: memoryMiB }) };
}

function requestOf(program: SandboxProgram, language: Sandbox['language'], answers: string): object {
  const { code, stdin, files = {}, calls = [] } = program;
  const made = calls.map(({ entry, args }, i) => ({
    entry,
    args: args.map((arg, j) => encodeValue(arg, `calls[${i}].args[${j}]`)),
  }));
  const harness = language === 'python' ? pythonHarness : nodeHarness;
  return {
    language: language === 'python' ? 'python' : 'nodejs',
    code: calls.length === 0 ? code : harness({ code, calls: made, answers }),
    ...(stdin === undefined ? {} : { stdin }),
    files: Object.fromEntries(Object.entries(files).map(([path, content]) => [path, base64Text(content)])),
    fetch_files: calls.length === 0 ? [] : [answers],
  };
}

interface Answered {
  readonly answer: FusionAnswer;
  readonly calls: number;
  readonly answers: string;
  readonly outputBytes: number;
  readonly queueMs: number;
}

function resultOf({ answer, calls, answers, outputBytes, queueMs }: Answered): SandboxResult {
  const { run, compile } = answer;
  const told = run ?? compile;
  if (told === undefined || told.status === 'Error') throw serverFailed('a run that it could not make');
  const output = {
    stdout: told.stdout.slice(0, outputBytes),
    stderr: told.stderr.slice(0, outputBytes),
    isCut: told.stdout.length > outputBytes || told.stderr.length > outputBytes,
    results: answersOf(answer.files[answers]).slice(0, calls),
    durationMs: told.seconds * 1000,
    queueMs,
  };
  if (told.status === 'TimeLimitExceeded') return { ...output, status: 'timeout' };
  if (told.returnCode !== 0) {
    const error = lastError(told.stderr);
    if (error.type === 'MemoryError') return { ...output, status: 'out_of_memory' };
    if (told.returnCode === 137 || told.returnCode < 0)
      return { ...output, status: 'killed', reason: `exit code ${told.returnCode}` };
    return { ...output, status: 'error', error };
  }
  if (run === undefined) throw serverFailed('no run after a compilation that ended well');
  if (output.results.length < calls) return { ...output, status: 'killed', reason: 'it ended before all calls' };
  return { ...output, status: 'ok' };
}

/** Lines that the program's process wrote: as much its word as its output. */
function answersOf(text: string | undefined): CallResult[] {
  const lines = (text ?? '').split('\n').filter((line) => line !== '');
  return lines.map((line) => {
    try {
      return callResultOf(JSON.parse(line));
    } catch {
      return { status: 'error', error: { type: 'MalformedValue', message: '' } };
    }
  });
}

/** Python's and Node's tracebacks name the exception at the start of a line of their own. */
function lastError(stderr: string): { readonly type: string; readonly message: string } {
  const lines = stderr.split('\n').reverse();
  for (const line of lines.slice(0, 50)) {
    const [, type, message = ''] =
      /^(?:Uncaught )?([A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt))(?:: (.*))?$/.exec(line) ?? [];
    if (type !== undefined) return { type, message };
  }
  return { type: 'ExitCode', message: '' };
}

/** So many at a time, in the order of asking. */
class Places {
  #free: number;
  readonly #waiting: (() => void)[] = [];
  constructor(count: number) {
    this.#free = count;
  }

  async take(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const go = (): void => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      };
      const onAbort = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(go), 1);
        reject(signal.reason);
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiting.push(go);
    });
  }

  give(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next();
  }
}
