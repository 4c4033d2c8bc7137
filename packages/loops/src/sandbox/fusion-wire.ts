/** `POST /run_code` of SandboxFusion, as its API documents it. */
import { serverFailed } from './fusion-failure.js';

/** The largest answer that is read: stdout, stderr and files. */
const maxAnswerBytes = 64_000_000;

const runStatuses = ['Finished', 'Error', 'TimeLimitExceeded'] as const;

export interface FusionRun {
  readonly status: (typeof runStatuses)[number];
  readonly seconds: number;
  /** Of a run that finished; else 0. */
  readonly returnCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface FusionAnswer {
  readonly compile: FusionRun | undefined;
  readonly run: FusionRun | undefined;
  /** Text by path. */
  readonly files: Readonly<Record<string, string>>;
}

interface FusionRequest {
  readonly endpoint: string;
  readonly body: string;
  readonly signal: AbortSignal;
  readonly options: {
    readonly headers?: Readonly<Record<string, string>>;
    readonly fetch?: typeof globalThis.fetch;
  };
}

/** @throws `sandbox_failed` for anything but an answer about the program */
export async function fusionAnswer({ endpoint, body, signal, options }: FusionRequest): Promise<FusionAnswer> {
  const { headers = {}, fetch = globalThis.fetch } = options;
  let response: Response;
  let text: string;
  try {
    response = await fetch(endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
      signal,
    });
    text = await limitedText(response);
  } catch (cause) {
    throw serverFailed('no answer', cause);
  }
  if (!response.ok) throw serverFailed(`status ${response.status}`);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw serverFailed('an answer that is no JSON');
  }
  const { status, run_result, compile_result, files } = record(parsed);
  // Its message quotes the program.
  if (status === 'SandboxError') throw serverFailed('an error of its own (SandboxError)');
  if (status !== 'Success' && status !== 'Failed') throw serverFailed('an answer without a status that is known');
  return { run: runOf(run_result), compile: runOf(compile_result), files: filesOf(files) };
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {}; // true: an object
}

function runOf(value: unknown): FusionRun | undefined {
  if (value === null || value === undefined) return undefined;
  const { status, execution_time, return_code, stdout, stderr } = record(value);
  const known = runStatuses.find((each) => each === status);
  if (known === undefined) throw serverFailed('a result without a status that is known');
  if (known === 'Finished' && typeof return_code !== 'number') throw serverFailed('a result without a return code');
  return {
    status: known,
    seconds: typeof execution_time === 'number' ? execution_time : 0,
    returnCode: typeof return_code === 'number' ? return_code : 0,
    stdout: typeof stdout === 'string' ? stdout : '',
    stderr: typeof stderr === 'string' ? stderr : '',
  };
}

function filesOf(value: unknown): Record<string, string> {
  return Object.fromEntries(
    Object.entries(record(value)).flatMap(([path, content]) =>
      typeof content === 'string' ? [[path, textOfBase64(content)]] : [],
    ),
  );
}

export function base64Text(content: string | Uint8Array): string {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}

function textOfBase64(text: string): string {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(text), (character) => character.charCodeAt(0)));
  } catch {
    throw serverFailed('a file that is no base64');
  }
}

async function limitedText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  if (response.body === null) return text;
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > maxAnswerBytes) {
      await reader.cancel();
      throw new Error(`an answer of more than ${maxAnswerBytes} bytes`);
    }
    text += decoder.decode(value, { stream: true });
  }
}
