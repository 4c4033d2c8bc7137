/** The error catalogue and the one error class: every code, its HTTP status, and whether trying again can help. */

import { adviceOn } from './advice.js';

interface ErrorRow {
  readonly status: number;
  readonly retryable: boolean;
  readonly doc: string;
  /** What to do, where an error says nothing more fitting. */
  readonly remedy: string;
}

/** Every error code of the product. The docs page is generated from this table. */
export const errorCatalogue = {
  invalid_argument: {
    status: 400,
    retryable: false,
    doc: 'A field of the request is missing, malformed or out of range.',
    remedy: 'correct the field and call again',
  },
  context_length_exceeded: {
    status: 400,
    retryable: false,
    doc: 'Prompt plus new tokens do not fit the context of the model.',
    remedy: 'shorten it, or use a model with a longer context',
  },
  memory_limit_exceeded: {
    status: 400,
    retryable: false,
    doc: 'The work was refused before it began: it is predicted to need more memory than the engine may use.',
    remedy: 'use shorter sequences, a smaller rank or model, or a higher limit (serve --max-memory)',
  },
  device_unavailable: {
    status: 400,
    retryable: false,
    doc: 'The device that the engine is to compute on is not there: not on this kind of machine, or without its driver or library.',
    remedy: 'install what it needs (loopwright doctor), or leave the device out to compute on the processor',
  },
  unsupported_model: {
    status: 400,
    retryable: false,
    doc: 'The architecture of the model is not one that the engine runs.',
    remedy: 'choose a model of an architecture that the engine runs',
  },
  model_invalid: {
    status: 400,
    retryable: false,
    doc: 'The files of a model are missing, cut, of a wrong shape, or hold NaN.',
    remedy: 'download the model again, or name another directory',
  },
  sequence_conflict: {
    status: 400,
    retryable: false,
    doc: 'A sequence number or client token was used with another payload.',
    remedy: 'repeat a submission only as it was; new operations take the next number',
  },
  gradient_incomplete: {
    status: 400,
    retryable: false,
    doc: 'A pass before this step failed, so the pending gradient was incomplete; it has been cleared.',
    remedy: 'repeat the passes, then the step',
  },
  checkpoint_mismatch: {
    status: 400,
    retryable: false,
    doc: 'A saved version does not fit this session (base model, kind, rank or target modules).',
    remedy: 'load it into a session like the one that saved it',
  },
  unauthenticated: {
    status: 401,
    retryable: false,
    doc: 'The request carries no valid key.',
    remedy: 'give the key of the server: apiKey, or LOOPWRIGHT_API_KEY',
  },
  model_gated: {
    status: 403,
    retryable: false,
    doc: 'The model is given out only to those who have accepted its licence.',
    remedy:
      'read the licence on the page of the model and ask for access there; then pull it with HF_TOKEN and --accept-license',
  },
  unknown_model: {
    status: 404,
    retryable: false,
    doc: 'No base model of that name is installed or found at that path.',
    remedy: 'name an installed model, or the absolute path of a model directory or GGUF file',
  },
  unknown_session: {
    status: 404,
    retryable: false,
    doc: 'No session of that name.',
    remedy: 'list the sessions of the server for their names',
  },
  unknown_operation: {
    status: 404,
    retryable: false,
    doc: 'No operation of that id in this session.',
    remedy: 'ask by the id that the submission returned, in the session that it went to',
  },
  unknown_version: {
    status: 404,
    retryable: false,
    doc: 'No saved version of that name, or it has expired.',
    remedy: 'list the saved versions for their names',
  },
  not_found: { status: 404, retryable: false, doc: 'No such route or file.', remedy: 'check the address and the name' },
  session_exists: {
    status: 409,
    retryable: false,
    doc: 'A session of that name exists already.',
    remedy: 'choose another name, or leave the name out',
  },
  session_not_active: {
    status: 409,
    retryable: false,
    doc: 'The session has ended (stopped, failed or expired) or is not yet running.',
    remedy: 'create a session; a saved state goes on in it where it stopped',
  },
  session_has_trainer: {
    status: 409,
    retryable: false,
    doc: 'Another training client already drives this session.',
    remedy: 'make a session of your own, or use sampling clients',
  },
  invalid_transition: {
    status: 409,
    retryable: false,
    doc: 'The session is not in a state from which that is possible.',
    remedy: 'look at the status of the session, and wait until it allows this',
  },
  cancelled: {
    status: 499,
    retryable: false,
    doc: 'The caller cancelled the operation, or its session was stopped while it waited.',
    remedy: 'call again where it is still wanted',
  },
  payload_too_large: {
    status: 413,
    retryable: false,
    doc: 'The request body is above the limit.',
    remedy: 'split the batch over several calls',
  },
  limit_exceeded: {
    status: 429,
    retryable: true,
    doc: 'Too much at once; try again after the stated delay.',
    remedy: 'wait for the stated delay, then call again',
  },
  quota_exceeded: {
    status: 429,
    retryable: false,
    doc: 'The number of live sessions is at its limit; stop one first.',
    remedy: 'stop a session that is not needed any more',
  },
  request_timeout: {
    status: 408,
    retryable: true,
    doc: 'The request did not arrive whole in time.',
    remedy: 'call again; where that does not help, send less at once or over a faster connection',
  },
  shutting_down: {
    status: 503,
    retryable: true,
    doc: 'The server is closing and takes nothing new; what it has accepted goes on when it starts again.',
    remedy: 'call again when it has started',
  },
  internal: {
    status: 500,
    retryable: true,
    doc: 'A fault of the product.',
    remedy: 'call again; if that does not help, report it with its request id',
  },
  blob_damaged: {
    status: 500,
    retryable: false,
    doc: 'A stored file is missing or holds other bytes than were written: something else than the server changed it.',
    remedy: 'restore the data directory from a backup, or use another version',
  },
  engine_failed: {
    status: 500,
    retryable: true,
    doc: 'The engine process ended or the runtime refused a computation.',
    remedy: 'call again: the engine is started anew',
  },
  out_of_memory: {
    status: 507,
    retryable: false,
    doc: 'The work does not fit the memory of this machine.',
    remedy: 'use fewer or shorter sequences at once, or a smaller model',
  },
  disk_full: {
    status: 507,
    retryable: false,
    doc: 'The disk is full; nothing was half written.',
    remedy: 'free some space and repeat the call; nothing was half written',
  },
  port_in_use: {
    status: 500,
    retryable: false,
    doc: 'Another program listens on that port.',
    remedy: 'choose another port; 0 takes a free one',
  },
  data_dir_in_use: {
    status: 500,
    retryable: false,
    doc: 'Another server works on that data directory.',
    remedy: 'stop the other server, or name another data directory',
  },
  run_in_use: {
    status: 409,
    retryable: false,
    doc: 'Another program writes to that run folder.',
    remedy: 'wait for it to end, or name another folder',
  },
  unsupported_host: {
    status: 500,
    retryable: false,
    doc: 'The embedded engine has no runtime for this operating system or processor.',
    remedy: 'start `loopwright serve` on another machine and connect to it by LOOPWRIGHT_URL',
  },
  timeout: {
    status: 504,
    retryable: true,
    doc: 'The time given by the caller ran out.',
    remedy: 'call again, or give more time',
  },
  connection_lost: {
    status: 503,
    retryable: true,
    doc: 'The server could not be reached.',
    remedy: 'check that the server runs and that the address is right',
  },
  operation_failed: {
    status: 500,
    retryable: false,
    doc: 'The operation was accepted and failed while it ran.',
    remedy: 'see the cause; the session goes on',
  },
  rollouts_failed: {
    status: 500,
    retryable: false,
    doc: 'Too many rollouts of several turns came to no reward.',
    remedy: 'look at the cause: it is the first failure',
  },
  grader_failed: {
    status: 500,
    retryable: false,
    doc: 'Too many samples could not be graded, or the grader ended the process or threw where nobody waits; the work was stopped.',
    remedy: 'mend the grader; the first failure is the cause of this error',
  },
  grader_gate_failed: {
    status: 500,
    retryable: false,
    doc: 'The grader of a run has failed its gate, or has changed since it passed; the run did not begin.',
    remedy: 'mend the grader and run `loopwright grader test` again, or override with a reason, which is recorded',
  },
  grader_timeout: {
    status: 504,
    retryable: false,
    doc: 'A grader gave no score in its time; what it was doing was stopped where that is possible.',
    remedy: 'give it more time, or bound its work',
  },
  row_invalid: {
    status: 400,
    retryable: false,
    doc: 'Rows of a data file can not be used; each has file, line and what is wrong.',
    remedy: 'mend the rows, or leave them out and have them counted',
  },
  data_invalid: {
    status: 400,
    retryable: false,
    doc: 'A data file as a whole can not be used: damaged, changed since it was indexed, or of no one format.',
    remedy: 'write or download the file again',
  },
  sandbox_failed: {
    status: 500,
    retryable: true,
    doc: 'A sandbox could not run a program at all. What a program itself does wrong is a result, not an error.',
    remedy: 'see the cause; check that what the sandbox needs is installed, or that its service is up',
  },
  guard_stopped: {
    status: 409,
    retryable: false,
    doc: 'An alarm of the guard ended the run: `details` has its name, step and page.',
    remedy: 'do what the alarm advises, then go on from the last checkpoint before its step; onAlarm decides otherwise',
  },
  approval_refused: {
    status: 409,
    retryable: false,
    doc: 'A version was to be approved without the results of an evaluation, or although they say that it fell.',
    remedy: 'attach the results with loopwright eval, or give the reason to do without',
  },
  loss_function_failed: {
    status: 500,
    retryable: false,
    doc: 'A loss function of the caller threw, or gave numbers that are not finite or of the wrong shape.',
    remedy: 'mend the function; no gradient was added, so repeat the passes, then the step',
  },
  operation_skipped: {
    status: 409,
    retryable: false,
    doc: 'The session ended before the operation ran.',
    remedy: 'create a session, and call again there',
  },
  disposed: {
    status: 500,
    retryable: false,
    doc: 'The client or handle was used after it was closed.',
    remedy: 'make a new client',
  },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof errorCatalogue;

/** What a person needs to mend the cause. `field` is a path such as `data[3].lossFnInputs.weights`. */
export interface ErrorDetails {
  readonly field?: string;
  readonly expected?: string;
  readonly got?: string;
  readonly remedy?: string;
  readonly [extra: string]: unknown;
}

export interface LoopwrightErrorOptions {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details?: ErrorDetails;
  readonly requestId?: string;
  readonly cause?: unknown;
}

/** The shape in which an error crosses a process or the network. */
export interface WireError {
  readonly code: string;
  readonly message: string;
  readonly details?: ErrorDetails;
  readonly request_id?: string;
}

const marker = Symbol.for('loopwright.error');

/** The one error class; recognise it with `LoopwrightError.isInstance(error)` and branch on `error.code`. */
export class LoopwrightError extends Error {
  override readonly name = 'LoopwrightError';
  readonly code: ErrorCode;
  readonly details: ErrorDetails;
  readonly requestId: string | undefined;
  readonly [marker] = true;

  constructor({ code, message, details = {}, requestId, cause }: LoopwrightErrorOptions) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.details = details;
    this.requestId = requestId;
  }

  get status(): number {
    return errorCatalogue[this.code].status;
  }

  get retryable(): boolean {
    return errorCatalogue[this.code].retryable;
  }

  /** True for errors of any loaded copy of this package, so it is safer than `instanceof`. */
  static isInstance(error: unknown): error is LoopwrightError {
    return typeof error === 'object' && error !== null && marker in error;
  }

  toJSON(): WireError {
    return {
      code: this.code,
      message: this.message,
      details: this.details,
      ...(this.requestId === undefined ? {} : { request_id: this.requestId }),
    };
  }

  /** Rebuilds the error that {@link LoopwrightError.toJSON} wrote; unknown codes become `internal`. */
  static fromJSON(wire: WireError): LoopwrightError {
    const code = wire.code in errorCatalogue ? (wire.code as ErrorCode) : 'internal';
    return new LoopwrightError({
      code,
      message: wire.message,
      details: wire.details ?? {},
      ...(wire.request_id === undefined ? {} : { requestId: wire.request_id }),
    });
  }
}

export interface Complaint {
  readonly code?: ErrorCode;
  /** Path of the offending field. */
  readonly field: string;
  readonly expected: string;
  /** What came, described (type, length, value of a number), never the content of prompts or samples. */
  readonly got: string;
  /** Advice on the field or, where there is none, what the catalogue says of the code by default. */
  readonly remedy?: string;
  /** `field: expected …, got …; remedy` by default; for the words that a wire promises. */
  readonly message?: string;
  readonly cause?: unknown;
}

/** A refusal: has all that a person needs to mend the cause in its details. */
export function complaint({
  code = 'invalid_argument',
  field,
  expected,
  got,
  remedy = defaultRemedy(code, field),
  message = `${field}: expected ${expected}, got ${got}; ${remedy}`,
  cause,
}: Complaint): LoopwrightError {
  return new LoopwrightError({ code, message, details: { field, expected, got, remedy }, cause });
}

function defaultRemedy(code: ErrorCode, field: string): string {
  const advice = code === 'invalid_argument' ? adviceOn(field) : undefined;
  return advice ?? errorCatalogue[code].remedy;
}

/** Anything thrown, as a LoopwrightError; foreign errors become `internal` with the original as `cause`. */
export function asLoopwrightError(error: unknown, code: ErrorCode = 'internal'): LoopwrightError {
  if (LoopwrightError.isInstance(error)) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new LoopwrightError({ code, message, cause: error });
}
