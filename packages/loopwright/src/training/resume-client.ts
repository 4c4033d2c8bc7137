/** The training client of a run that goes on: a new session with the state of its newest checkpoint that is still there. */
import { setTimeout } from 'node:timers/promises';
import type { TrainingClient } from '@loopwright/client';
import type { Checkpoint, RunRecord } from '@loopwright/loops/node';
import { complaint, LoopwrightError } from '@loopwright/protocol';
import type { ServiceConnection } from '../connect.js';
import { placeOf } from './resume-place.js';

export interface ResumeClientOptions {
  readonly service: ServiceConnection;
  readonly record: RunRecord;
  readonly onNotice: (line: string) => void;
  readonly signal: AbortSignal;
}

export interface Resumed {
  readonly training: TrainingClient;
  readonly checkpoint: Checkpoint;
}

/**
 * With the optimizer, always: without its moments a run goes on otherwise than it would have.
 *
 * @returns undefined where there are no checkpoints
 * @throws `not_found` when the server has the state of none of them
 */
export async function resumeClient(
  newestFirst: readonly Checkpoint[],
  { service, record, onNotice, signal }: ResumeClientOptions,
): Promise<Resumed | undefined> {
  await stopEarlier({ service, record, signal });
  for (const checkpoint of newestFirst) {
    const { modelPackageArn, step } = checkpoint;
    try {
      const training = await service.createTrainingClientFromStateWithOptimizer({ modelPackageArn, signal });
      return { training, checkpoint };
    } catch (error) {
      if (codeOf(error) !== 'unknown_version') throw error;
      onNotice(`The state of the checkpoint after step ${step} is gone.`);
    }
  }
  if (newestFirst.length === 0) return undefined;
  const there = record.session === undefined ? 'another server' : record.session.place;
  throw complaint({
    code: 'not_found',
    field: 'resume',
    expected: `a server with a checkpoint of this run (${newestFirst.map(({ modelPackageArn }) => modelPackageArn).join(', ')})`,
    got: `none at ${placeOf(service)}`,
    remedy: `connect to where the run was: ${there}`,
  });
}

/** A session that is being stopped still holds its place; it is waited for this long. */
const maxStopMs = 30_000;

/** The session of a process that was killed may live on, and hold its place. The run's lock says that nobody uses it. */
async function stopEarlier({
  service,
  record: { session },
  signal,
}: Pick<ResumeClientOptions, 'service' | 'record' | 'signal'>): Promise<void> {
  if (session === undefined || session.place !== placeOf(service)) return;
  const { name } = session;
  try {
    await service.stopSession(name, { signal });
  } catch (error) {
    if (codeOf(error) === 'unknown_session') return;
    throw error;
  }
  for (const end = performance.now() + maxStopMs; performance.now() < end; ) {
    const sessions = await service.listSessions({ nameContains: name, status: 'Stopping', signal });
    if (sessions.every((each) => each.name !== name)) return;
    await setTimeout(100, undefined, { signal });
  }
}

function codeOf(error: unknown): string | undefined {
  return LoopwrightError.isInstance(error) ? error.code : undefined;
}
