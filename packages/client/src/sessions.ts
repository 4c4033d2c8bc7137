/** Sessions on the control plane: made, waited for, listed, stopped, deleted. */
import {
  complaint,
  defaultTargetModules,
  LoopwrightError,
  type SamplerPath,
  type SessionStatus,
  samplerPaths,
  type TargetModule,
  type TrainingSpec,
  targetModules,
} from '@loopwright/protocol';
import { encodeCreateTrainingSession, sessionNameOf, type TrainingSessionDetail } from '@loopwright/wires/sagemaker';
import { patientPolicy } from './retry.js';
import type { CallOptions, ControlOptions, Transport } from './transport.js';

/** Longest wait for a session to run: loading a model can take minutes. */
const startTimeoutMs = 600_000;
const firstDelayMs = 25;
const maxDelayMs = 1_000;

const mayHaveArrived: readonly string[] = ['cancelled', 'timeout', 'connection_lost'];

export interface SessionSummary {
  readonly name: string;
  readonly status: SessionStatus;
  readonly createdAtMs: number;
}

export interface SessionFilter extends CallOptions {
  readonly nameContains?: string;
  readonly status?: SessionStatus;
}

/** A name that fits the wire's pattern and does not collide. */
export function newSessionName(): string {
  return `loopwright-${crypto.randomUUID()}`;
}

export interface LoraOptions {
  /** 1–256; default 32. */
  readonly rank?: number;
  /** The adapter is scaled by alpha / rank; default 2 × rank. */
  readonly alpha?: number;
  /** Linear layers that carry an adapter; default all but `lm_head`. */
  readonly targetModules?: readonly TargetModule[];
  /**
   * How its versions are sampled from; default `apart`: the adapter beside the base's weights. `merged` folds it into a copy of the weights, which makes
   * one sequence at a time faster and each new version slower.
   */
  readonly samplerPath?: SamplerPath;
}

/** @throws `invalid_argument` naming the option */
export function loraSpec({
  rank = 32,
  alpha = 2 * rank,
  targetModules: targets = defaultTargetModules,
  samplerPath,
}: LoraOptions): TrainingSpec {
  checkInteger('rank', rank, 256);
  checkInteger('alpha', alpha, 2 ** 31 - 1);
  const unknown = targets.find((name) => !targetModules.includes(name));
  if (unknown !== undefined || targets.length === 0) {
    throw complaint({
      field: 'targetModules',
      expected: `one or more of ${targetModules.join(', ')}`,
      got: unknown === undefined ? 'none' : String(unknown),
    });
  }
  if (samplerPath !== undefined && !samplerPaths.includes(samplerPath))
    throw complaint({
      field: 'samplerPath',
      expected: samplerPaths.join(' or '),
      got: String(samplerPath),
      remedy: 'leave it out for apart',
    });
  return { type: 'lora', rank, alpha, targetModules: targets, ...(samplerPath === undefined ? {} : { samplerPath }) };
}

function checkInteger(field: string, value: number, max: number): void {
  if (!Number.isInteger(value) || value < 1 || value > max) {
    throw complaint({ field, expected: `an integer from 1 to ${max}`, got: String(value) });
  }
}

export interface SessionToMake {
  readonly name?: string | undefined;
  readonly baseModelArn: string;
  readonly training: TrainingSpec;
  readonly seed?: number | undefined;
  readonly description?: string | undefined;
}

/** Creates a session and waits until it runs; one that comes up wrong is stopped again. @returns its name */
export async function startSession(
  transport: Transport,
  session: SessionToMake,
  { signal }: CallOptions,
): Promise<string> {
  const name = session.name ?? newSessionName();
  const request = encodeCreateTrainingSession({
    name,
    baseModelArn: session.baseModelArn,
    training: session.training,
    clientToken: crypto.randomUUID(), // of all attempts of this call
    ...(session.seed === undefined ? {} : { seed: session.seed }),
    ...(session.description === undefined ? {} : { description: session.description }),
  });
  try {
    await transport.control('CreateTrainingSession', request, { signal, retry: patientPolicy });
  } catch (error) {
    // A name of ours can only be taken by an earlier attempt whose answer was lost.
    const isOurs = session.name === undefined && LoopwrightError.isInstance(error);
    if (!isOurs || error.code !== 'session_exists') {
      // Given up on while the request was under way: the server may have made it.
      if (isOurs && mayHaveArrived.includes(error.code)) void stopSession(transport, name).catch(() => undefined);
      throw error;
    }
  }
  try {
    await waitUntilRunning(transport, name, signal);
  } catch (error) {
    await stopSession(transport, name).catch(() => undefined);
    throw error;
  }
  return name;
}

export async function describeSession(
  transport: Transport,
  name: string,
  options: ControlOptions = {},
): Promise<TrainingSessionDetail> {
  const { TrainingSessionDetail: detail } = await transport.control(
    'DescribeTrainingSession',
    { TrainingSessionName: sessionNameOf(name) },
    options,
  );
  return detail;
}

async function waitUntilRunning(transport: Transport, name: string, signal: AbortSignal | undefined): Promise<void> {
  await waitForStatus(
    transport,
    name,
    signal,
    ({ TrainingSessionStatus: status, ErrorDetails: why, LoopwrightError: cause }) => {
      if (status === 'Created' || status === 'Scheduled') return false;
      if (status === 'Running') return true;
      if (cause !== undefined) throw LoopwrightError.fromJSON(cause);
      throw complaint({
        code: 'session_not_active',
        message: `session ${name} ended as ${status} before it ran${why === undefined ? '' : `: ${why}`}`,
        field: 'session',
        expected: 'Running',
        got: status,
      });
    },
  );
}

async function waitForStatus(
  transport: Transport,
  name: string,
  signal: AbortSignal | undefined,
  isThere: (detail: TrainingSessionDetail) => boolean,
): Promise<void> {
  const { clock } = transport;
  const start = clock.now();
  for (let delayMs = firstDelayMs; ; delayMs = Math.min(maxDelayMs, delayMs * 2)) {
    const detail = await describeSession(transport, name, { signal, retry: patientPolicy });
    if (isThere(detail)) return;
    if (clock.now() - start > startTimeoutMs) {
      throw complaint({
        code: 'timeout',
        field: 'session',
        expected: `${name} to be ready within ${startTimeoutMs / 1000} s`,
        got: detail.TrainingSessionStatus,
        remedy: 'look at the log of the server, and try again',
      });
    }
    await clock.sleep(delayMs, signal);
  }
}

export async function listSessions(
  transport: Transport,
  { nameContains, status, signal }: SessionFilter,
): Promise<SessionSummary[]> {
  const sessions: SessionSummary[] = [];
  let next: string | undefined;
  do {
    const page = await transport.control(
      'ListTrainingSessions',
      {
        MaxResults: 100,
        ...(nameContains === undefined ? {} : { NameContains: nameContains }),
        ...(status === undefined ? {} : { StatusEquals: status }),
        ...(next === undefined ? {} : { NextToken: next }),
      },
      { signal },
    );
    for (const summary of page.TrainingSessionSummaries) {
      sessions.push({
        name: sessionNameOf(summary.TrainingSessionArn),
        status: summary.TrainingSessionStatus,
        createdAtMs: summary.CreationTime * 1000,
      });
    }
    next = page.NextToken;
  } while (next !== undefined);
  return sessions;
}

/** Stops a session; one that has ended already is fine. @throws `unknown_session` */
export async function stopSession(transport: Transport, name: string, options: CallOptions = {}): Promise<void> {
  try {
    await transport.control('StopTrainingSession', { TrainingSessionName: sessionNameOf(name) }, options);
  } catch (error) {
    if (!LoopwrightError.isInstance(error) || error.code !== 'invalid_transition') throw error;
  }
}

export interface DeleteOptions extends CallOptions {
  /** Stop it first and wait until it has stopped; default false. */
  readonly stopIfActive?: boolean;
}

/** Deletes a session; its saved versions stay. @throws `unknown_session`, `invalid_transition` for one that runs */
export async function deleteSession(
  transport: Transport,
  name: string,
  { stopIfActive = false, signal }: DeleteOptions = {},
): Promise<void> {
  if (stopIfActive) {
    await stopSession(transport, name, { signal });
    await waitForStatus(transport, name, signal, ({ TrainingSessionStatus: status }) =>
      ['Stopped', 'Failed', 'Expired', 'DeletionFailed'].includes(status),
    );
  }
  await transport.control('DeleteTrainingSession', { TrainingSessionName: sessionNameOf(name) }, { signal });
}
