/** One POST of JSON to a service of others, tried again where waiting can help. Neither bodies nor headers get into its errors. */
import { complaint, LoopwrightError } from '@loopwright/protocol';

export type FetchLike = (input: string, init: RequestInit) => Promise<Response>;

export interface EndpointOptions {
  readonly url: string;
  /** Sent with each request, such as `{ authorization: 'Bearer …' }`; a function is given the body, for signatures. */
  readonly headers?: Readonly<Record<string, string>> | ((body: string) => Readonly<Record<string, string>>);
  /** Of one attempt, from the time that it has a place; default 60 000. */
  readonly timeoutMs?: number;
  /** Further attempts after 408, 425, 429, 5xx and lost connections; default 3. */
  readonly retries?: number;
  /** Requests at once; default 16. */
  readonly concurrency?: number;
  /** Default: the global one. */
  readonly fetch?: FetchLike;
  /** Default: a timer. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  /** From 0 to 1, for the jitter of waits; default `Math.random`. */
  readonly random?: () => number;
}

export interface JsonEndpoint {
  /**
   * @param name of who waits, for the error of a timeout
   * @returns the answer's JSON
   * @throws `grader_timeout`; `connection_lost`; `limit_exceeded` (429 to the last); `operation_failed` for other refusals and what is
   *   no JSON; the signal's reason
   */
  post(body: unknown, name: string, signal: AbortSignal): Promise<unknown>;
}

const maxAnswerBytes = 10_000_000;
const retried: ReadonlySet<number> = new Set([408, 425, 429]);
const [baseDelayMs, maxDelayMs] = [500, 30_000];

/** @throws `invalid_argument` for an address that is none or holds a password, or a number out of range */
export function jsonEndpoint(options: EndpointOptions): JsonEndpoint {
  const { timeoutMs = 60_000, retries = 3, concurrency = 16, headers = {}, random = Math.random } = options;
  const { fetch: send = (input, init) => globalThis.fetch(input, init), sleep = timer } = options;
  checkUrl(options.url);
  if (!(timeoutMs > 0 && timeoutMs <= 900_000)) refuse('timeoutMs', 'above 0, at most 900000', timeoutMs);
  if (!(Number.isInteger(retries) && retries >= 0)) refuse('retries', 'a whole number from 0', retries);
  if (!(Number.isInteger(concurrency) && concurrency > 0)) refuse('concurrency', 'a whole number from 1', concurrency);
  const slots = limiter(concurrency);

  const attempt = async (body: string, name: string, signal: AbortSignal): Promise<unknown> => {
    const late = AbortSignal.timeout(timeoutMs);
    try {
      const response = await send(options.url, {
        ...{ method: 'POST', body, signal: AbortSignal.any([signal, late]) },
        // A redirect would carry keys to another host.
        redirect: 'error',
        headers: { 'content-type': 'application/json', ...(typeof headers === 'function' ? headers(body) : headers) },
      });
      if (!response.ok) {
        await response.body?.cancel();
        throw refusalOf(response);
      }
      return parsed(await textOf(response));
    } catch (cause) {
      if (signal.aborted) throw signal.reason;
      if (late.aborted) {
        const message = `${name}: no answer of the endpoint within ${timeoutMs} ms; give it more time`;
        throw new LoopwrightError({ code: 'grader_timeout', message, details: { field: name } });
      }
      if (LoopwrightError.isInstance(cause)) throw cause;
      const message = `${name}: the endpoint could not be reached, or redirected; check its address`;
      throw new LoopwrightError({ code: 'connection_lost', message, details: { field: 'url' }, cause });
    }
  };

  return {
    post: async (value, name, signal) => {
      const body = JSON.stringify(value);
      for (let failures = 0; ; failures++) {
        try {
          return await slots(() => attempt(body, name, signal), signal);
        } catch (error) {
          if (signal.aborted || !LoopwrightError.isInstance(error)) throw error;
          if (failures >= retries || (error.details.mayRetry !== true && error.code !== 'connection_lost')) throw error;
          const backoff = random() * Math.min(maxDelayMs, baseDelayMs * 2 ** failures);
          const asked = error.details.retryAfterMs;
          await sleep(typeof asked === 'number' ? asked + backoff : backoff, signal);
        }
      }
    },
  };
}

function checkUrl(url: unknown): void {
  const parsedUrl = typeof url === 'string' && URL.canParse(url) ? new URL(url) : undefined;
  if (parsedUrl === undefined || !/^https?:$/.test(parsedUrl.protocol))
    throw complaint({ field: 'url', expected: 'an http or https address', got: typeof url });
  if (parsedUrl.username !== '' || parsedUrl.password !== '')
    throw complaint({ field: 'url', expected: 'no password in it', got: 'one', remedy: 'send it by headers' });
}

function refuse(field: string, expected: string, got: number): never {
  throw complaint({ field, expected, got: String(got) });
}

function refusalOf({ status, headers }: Response): LoopwrightError {
  const mayRetry = retried.has(status) || status >= 500;
  const retryAfterMs = waitAskedFor(headers.get('retry-after'));
  const details = {
    field: 'url',
    httpStatus: status,
    mayRetry,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
  return new LoopwrightError({
    code: status === 429 ? 'limit_exceeded' : 'operation_failed',
    message: `the endpoint answered with HTTP status ${status}`,
    details,
  });
}

/** Seconds or a date; at most ten minutes. */
function waitAskedFor(header: string | null): number | undefined {
  if (header === null) return undefined;
  const ms = /^\d+(\.\d+)?$/.test(header.trim()) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isFinite(ms) ? Math.min(600_000, Math.max(0, ms)) : undefined;
}

async function textOf(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let [text, size] = ['', 0];
  for await (const chunk of response.body ?? []) {
    const bytes = chunk as Uint8Array; // true: a body gives bytes
    size += bytes.byteLength;
    if (size > maxAnswerBytes) throw answerFault(`more than ${maxAnswerBytes} bytes`);
    text += decoder.decode(bytes, { stream: true });
  }
  return text + decoder.decode();
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own error quotes the text.
    throw answerFault(`${text.length} characters that are no JSON`);
  }
}

function answerFault(got: string): LoopwrightError {
  return complaint({ code: 'operation_failed', field: 'answer', expected: 'JSON', got, remedy: 'mend the endpoint' });
}

/** Bounds how much happens at once; who waits longest goes first, and who gives up leaves the queue. */
function limiter(count: number): <T>(work: () => Promise<T>, signal: AbortSignal) => Promise<T> {
  let free = count;
  const waiting = new Set<() => void>();
  return async (work, signal) => {
    if (signal.aborted) throw signal.reason;
    if (free > 0) free -= 1;
    else
      await new Promise<void>((resolve, reject) => {
        const go = (): void => {
          waiting.delete(go);
          signal.removeEventListener('abort', leave);
          resolve();
        };
        const leave = (): void => {
          waiting.delete(go);
          reject(signal.reason);
        };
        waiting.add(go);
        signal.addEventListener('abort', leave, { once: true });
      });
    try {
      return await work();
    } finally {
      const [next] = waiting;
      if (next === undefined) free += 1;
      else next();
    }
  };
}

function timer(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      clearTimeout(waiting);
      reject(signal.reason);
    };
    const waiting = setTimeout(() => {
      signal.removeEventListener('abort', leave);
      resolve();
    }, ms);
    signal.addEventListener('abort', leave, { once: true });
  });
}
