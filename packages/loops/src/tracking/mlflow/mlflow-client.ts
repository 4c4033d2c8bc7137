/** Calls of MLflow's REST API. What an error says names the server and its code, never what was sent. */
import { complaint } from '@loopwright/protocol';
import * as z from 'zod';
import { errorText } from '../../error-text.js';

export interface MlflowServer {
  /** Such as `http://127.0.0.1:5000`. */
  readonly uri: string;
  /** Sent as a bearer token. */
  readonly token?: string | undefined;
  /** For basic authentication, with a password. */
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** Of one call; default 10 s. */
  readonly timeoutMs?: number;
  readonly fetch?: typeof fetch;
}

/** A call that failed. */
export class MlflowFailure extends Error {
  override readonly name = 'MlflowFailure';
  /** Whether the same call may come through later. */
  readonly isPassing: boolean;
  /** Of MLflow, such as `RESOURCE_DOES_NOT_EXIST`. */
  readonly code: string | undefined;

  constructor(
    message: string,
    { isPassing, code, cause }: { isPassing: boolean; code?: string | undefined; cause?: unknown },
  ) {
    super(message, { cause });
    this.isPassing = isPassing;
    this.code = code;
  }
}

const errorBody = z.object({ error_code: z.string().regex(/^[A-Z][A-Z_]{0,60}$/) });

export class MlflowClient {
  /** Without anything secret. */
  readonly uri: string;
  readonly #authorization: string | undefined;
  readonly #timeoutMs: number;
  readonly #fetch: typeof fetch;

  /** @throws `invalid_argument` for an address that isn't of HTTP */
  constructor({ uri, token, username, password, timeoutMs = 10_000, fetch: call = fetch }: MlflowServer) {
    const url = URL.canParse(uri) ? new URL(uri) : undefined;
    if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
      throw complaint({
        field: 'mlflow.uri',
        expected: 'the address of a server, such as http://127.0.0.1:5000',
        got: url === undefined ? 'no address' : `one of ${url.protocol}`,
        remedy: 'start one with `mlflow server`; it can keep its runs in a folder or a database',
      });
    }
    const user = username ?? decodeURIComponent(url.username);
    const secret = password ?? decodeURIComponent(url.password);
    this.uri = `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
    this.#authorization =
      token !== undefined
        ? `Bearer ${token}`
        : user === ''
          ? undefined
          : `Basic ${Buffer.from(`${user}:${secret}`).toString('base64')}`;
    this.#timeoutMs = timeoutMs;
    this.#fetch = call;
  }

  /** @throws {MlflowFailure} */
  async get<T>(path: string, query: Readonly<Record<string, string>>, schema: z.ZodType<T>): Promise<T> {
    return this.#call(`${path}?${new URLSearchParams(query).toString()}`, { method: 'GET' }, schema);
  }

  /** @throws {MlflowFailure} */
  async post<T>(path: string, body: object, schema: z.ZodType<T>): Promise<T> {
    return this.#call(path, { method: 'POST', body: JSON.stringify(body) }, schema);
  }

  async #call<T>(path: string, init: RequestInit, schema: z.ZodType<T>): Promise<T> {
    const headers = {
      'content-type': 'application/json',
      ...(this.#authorization === undefined ? {} : { authorization: this.#authorization }),
    };
    let response: Response;
    let text: string;
    try {
      const signal = AbortSignal.timeout(this.#timeoutMs);
      response = await this.#fetch(`${this.uri}/api/2.0/mlflow/${path}`, { ...init, headers, signal });
      text = await response.text();
    } catch (cause) {
      const why =
        cause instanceof Error && cause.name === 'TimeoutError' ? `not in ${this.#timeoutMs / 1000} s` : 'not reached';
      throw new MlflowFailure(`${this.uri}: ${why}`, { isPassing: true, cause });
    }
    const body = parsed(text);
    if (!response.ok) {
      const code = errorBody.safeParse(body).data?.error_code;
      throw new MlflowFailure(
        `${this.uri} answered ${[response.status, code].filter(Boolean).join(' ')}${remedyOf(response.status)}`,
        {
          isPassing: response.status >= 500 || response.status === 429 || response.status === 408,
          code,
        },
      );
    }
    const { data, success } = schema.safeParse(body);
    if (success) return data;
    throw new MlflowFailure(`${this.uri}: not the answer of an MLflow server`, { isPassing: false });
  }
}

function remedyOf(status: number): string {
  if (status === 401) return '; set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN';
  return status === 403 ? '; these credentials may not do that' : '';
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What happened, in one line without content. */
export function failureText(error: unknown): string {
  return error instanceof MlflowFailure ? error.message : errorText(error);
}
