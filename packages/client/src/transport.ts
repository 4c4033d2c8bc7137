/** HTTP: one request with its retries, and the error of whatever went wrong. */
import { complaint, LoopwrightError } from '@loopwright/protocol';
import {
  type ControlAction,
  type ControlRequest,
  type ControlResponse,
  controlContentType,
  controlTargetPrefix,
  decodeError,
  parseJson,
} from '@loopwright/wires/sagemaker';
import { type Clock, cancelledBy, systemClock } from './clock.js';
import { briefPolicy, firstContactPolicy, isFault, type RetryPolicy, retryDelayMs } from './retry.js';

export interface ConnectOptions {
  /** Where the server listens, such as `http://127.0.0.1:8080`. */
  readonly baseUrl: string;
  /** Sent as bearer token; not needed on loopback unless the server asks for it. */
  readonly apiKey?: string;
  /** Default: the global one. */
  readonly fetch?: typeof fetch;
  /** Default: the system's. */
  readonly clock?: Clock;
  /** Numbers from 0 to 1 for the jitter of retries; default `Math.random`. */
  readonly random?: () => number;
}

/** `retry`: {@link briefPolicy} by default. */
export interface ControlOptions extends CallOptions {
  readonly retry?: RetryPolicy;
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** From the root, such as `/v1/training-sessions/a/operations`. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
  /** Of one attempt; default 60 s. */
  readonly timeoutMs?: number;
  /** Default {@link briefPolicy}; until the server has answered once, {@link firstContactPolicy} holds. */
  readonly retry?: RetryPolicy;
  /** Told before each wait for another attempt. */
  readonly onRetry?: (error: LoopwrightError) => void;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

const attemptTimeoutMs = 60_000;

export class Transport {
  readonly clock: Clock;
  /** Without a slash at the end. */
  readonly baseUrl: string;
  readonly #apiKey: string | undefined;
  readonly #fetch: typeof fetch;
  readonly #random: () => number;
  /** Whether anything but silence ever came from the server. */
  #hasAnswered = false;

  /** @throws `invalid_argument` when `baseUrl` is not an http URL */
  constructor({ baseUrl, apiKey, fetch: fetchOption, clock = systemClock, random = Math.random }: ConnectOptions) {
    this.baseUrl = checkedUrl(baseUrl);
    this.clock = clock;
    this.#apiKey = apiKey;
    // Browsers refuse a fetch that is called as a method of something else.
    this.#fetch = fetchOption ?? ((...args) => globalThis.fetch(...args));
    this.#random = random;
  }

  /** Text of a successful answer. @throws the server's error; `connection_lost`, `timeout`, `cancelled` */
  text(request: HttpRequest): Promise<string> {
    return this.#retried(request, (response) => response.text());
  }

  /** Body of a successful answer, as it comes; what breaks off is not repeated. */
  open(request: HttpRequest): Promise<ReadableStream<Uint8Array>> {
    return this.#retried(request, async ({ body }) => body ?? new Blob([]).stream());
  }

  async #retried<T>(request: HttpRequest, read: (response: Response) => Promise<T>): Promise<T> {
    const { clock } = this;
    const { signal, retry = briefPolicy } = request;
    let firstFailure: number | undefined;
    let faults = 0;
    for (let failures = 1; ; failures++) {
      try {
        return await this.#attempt(request, read);
      } catch (error) {
        if (!LoopwrightError.isInstance(error)) throw error;
        firstFailure ??= clock.now();
        if (isFault(error)) faults += 1;
        const elapsedMs = clock.now() - firstFailure;
        const policy = this.#hasAnswered ? retry : firstContactPolicy;
        const delayMs = retryDelayMs(error, { failures, faults, elapsedMs }, policy, this.#random());
        if (delayMs === undefined) throw error;
        request.onRetry?.(error);
        await clock.sleep(delayMs, signal);
      }
    }
  }

  /** Parsed body of a successful answer. */
  async json(request: HttpRequest): Promise<unknown> {
    const text = await this.text(request);
    try {
      return text === '' ? {} : parseJson(text);
    } catch (cause) {
      throw complaint({
        field: 'baseUrl',
        expected: 'a server that answers in JSON',
        got: `${text.length} characters that are not`,
        remedy: `check the address ${this.baseUrl}`,
        cause,
      });
    }
  }

  /** A control-plane action. */
  async control<A extends ControlAction>(
    action: A,
    body: ControlRequest<A>,
    { signal, retry }: ControlOptions = {},
  ): Promise<ControlResponse<A>> {
    const answer = await this.json({
      method: 'POST',
      ...(retry === undefined ? {} : { retry }),
      path: '/',
      headers: { 'content-type': controlContentType, 'x-amz-target': `${controlTargetPrefix}${action}` },
      body: JSON.stringify(body),
      signal,
    });
    return answer as ControlResponse<A>; // the wire's promise; members are checked where they are read
  }

  async #attempt<T>(
    { method, path, headers = {}, body, signal, timeoutMs = attemptTimeoutMs }: HttpRequest,
    read: (response: Response) => Promise<T>,
  ): Promise<T> {
    throwIfAborted(signal);
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), timeoutMs);
    const authorization = this.#apiKey === undefined ? {} : { authorization: `Bearer ${this.#apiKey}` };
    try {
      const response = await this.#fetch(`${this.baseUrl}${path}`, {
        method,
        headers: { ...headers, ...authorization },
        // The caller's goes on to count while a body is read that is handed out.
        signal: signal === undefined ? controller.signal : AbortSignal.any([signal, controller.signal]),
        ...(body === undefined ? {} : { body }),
      });
      this.#hasAnswered = true;
      if (response.ok) return await read(response);
      const text = await response.text();
      throw decodeError({ status: response.status, header: (name) => response.headers.get(name), body: text });
    } catch (error) {
      if (LoopwrightError.isInstance(error)) throw error;
      throwIfAborted(signal);
      if (controller.signal.aborted) {
        throw complaint({
          code: 'timeout',
          message: `the server at ${this.baseUrl} gave no answer within ${timeoutMs / 1000} s`,
          field: 'baseUrl',
          expected: `an answer within ${timeoutMs / 1000} s`,
          got: 'none',
          remedy: `check that the server at ${this.baseUrl} is not overloaded, and call again`,
          cause: error,
        });
      }
      const remedy = 'check that it runs and that the address is right';
      throw complaint({
        code: 'connection_lost',
        message: `the server at ${this.baseUrl} could not be reached; ${remedy}`,
        field: 'baseUrl',
        expected: 'a server that answers',
        got: `nothing at ${this.baseUrl}`,
        remedy,
        cause: error,
      });
    } finally {
      clearTimeout(timer);
    }
  }
}

function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw cancelledBy(signal);
}

/** The URL without user, password, query, fragment and closing slash. */
function checkedUrl(baseUrl: string): string {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw complaint({
      field: 'baseUrl',
      expected: 'an http or https URL such as http://127.0.0.1:8080',
      got: url === undefined ? 'a string that is no URL' : `a URL with ${url.protocol}`,
    });
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}
