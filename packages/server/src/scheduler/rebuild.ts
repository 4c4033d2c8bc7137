/** Makes a session in an engine: a new one, or the equal of one that was lost, from what was kept of it and its log. */
import type { Engine, ExecutionPlan } from '@loopwright/engine';
import { LoopwrightError } from '@loopwright/protocol';
import type { Logger } from 'pino';
import type { TrainingRecord } from '../operations/operation-record.js';
import { type SessionRecord, trainedSpec } from '../sessions/session-record.js';
import type { SnapshotMetadata, SnapshotRecord } from '../snapshots/snapshot-store.js';
import type { ExecutionTools } from './execute.js';
import { planRebuild, type RebuildPlan } from './rebuild-plan.js';

export interface Rebuild {
  readonly engine: Engine;
  readonly session: SessionRecord;
  /** Operations from this number on have not had their turn. */
  readonly nextSequenceNumber: number;
  readonly tools: Pick<ExecutionTools, 'log' | 'registry' | 'snapshots'>;
  readonly logger: Logger;
}

export interface Rebuilt {
  /** The recorded one where there is one, so that a rebuilt session computes the same bits. */
  readonly plan: ExecutionPlan;
  /** What was run again. */
  readonly replayed: readonly TrainingRecord[];
}

export async function rebuildSession(rebuild: Rebuild): Promise<Rebuilt> {
  const { engine, session, nextSequenceNumber, tools } = rebuild;
  const { log, registry } = tools;
  await engine.closeSession(session.name); // a half-made one of an earlier attempt
  const plan = await engine.createSession(trainedSpec(session), session.plan === null ? {} : { plan: session.plan });
  const past = (await log.training(session.id)).filter(({ sequenceNumber }) => sequenceNumber < nextSequenceNumber);
  const available = new Set<string>();
  for (const { readsVersion, resolved } of past) {
    for (const version of [readsVersion, resolved.version ?? null]) {
      if (version !== null && (await registry.files(session.workspaceId, version)).length > 0) available.add(version);
    }
  }
  const isAvailable = (version: string) => available.has(version);
  let snapshots = await tools.snapshots.ofSession(session, { nextSequenceNumber, plan });
  for (;;) {
    const { anchor, replay } = planRebuild(past, { isAvailable, snapshots });
    if (anchor?.type === 'snapshot') {
      const { snapshot } = anchor;
      if (!(await restored(rebuild, snapshot))) {
        snapshots = snapshots.filter(({ id }) => id !== snapshot.id);
        continue;
      }
    } else if (anchor !== undefined) {
      const directory = await registry.directory(session.workspaceId, anchor.version);
      await engine.loadState(session.name, { directory, loadOptimizer: anchor.loadOptimizer });
    }
    await runAgain(rebuild, replay);
    if (past.length > 0) {
      const facts = { session: session.name, from: anchor?.type ?? 'seed', replayed: replay.length };
      rebuild.logger.info(facts, 'a session was made anew');
    }
    return { plan, replayed: replay.flatMap(({ type, record }) => (type === 'operation' ? [record] : [])) };
  }
}

/** False, with a line in the log, for a snapshot that is damaged, gone or of something else; the session is then as it was. */
async function restored({ engine, session, tools, logger }: Rebuild, snapshot: SnapshotRecord): Promise<boolean> {
  const { id, nextSequenceNumber } = snapshot;
  const skip = (code: string) => {
    logger.warn(
      { session: session.name, snapshot: id, nextSequenceNumber, code },
      'a snapshot is of no use: an earlier one or the log is used',
    );
    return false;
  };
  try {
    const { metadata } = await engine.restore(session.name, { directory: tools.snapshots.directory(snapshot) });
    if (standsFor(metadata, snapshot)) return true;
    await engine.closeSession(session.name);
    await engine.createSession(trainedSpec(session), session.plan === null ? {} : { plan: session.plan });
    return skip('checkpoint_mismatch');
  } catch (error) {
    if (!LoopwrightError.isInstance(error) || !uselessCodes.includes(error.code)) throw error;
    return skip(error.code);
  }
}

/** What `restore` says of files that are gone, cut, damaged or of another session or format. */
const uselessCodes: readonly string[] = ['unknown_version', 'model_invalid', 'checkpoint_mismatch', 'internal'];

function standsFor(metadata: string, { sessionId, nextSequenceNumber }: SnapshotRecord): boolean {
  try {
    const told = JSON.parse(metadata) as Partial<SnapshotMetadata> | null; // true: only compared
    return told?.session === sessionId && told.nextSequenceNumber === nextSequenceNumber;
  } catch {
    return false;
  }
}

async function runAgain({ engine, session, tools }: Rebuild, replay: RebuildPlan['replay']): Promise<void> {
  for (const { type, record } of replay) {
    if (type === 'clear') {
      await engine.clearGradient(session.name);
      continue;
    }
    const operation = await tools.log.operation(record);
    switch (operation.type) {
      case 'forward-backward':
        await engine.pass(session.name, operation, { isRepeat: true });
        break;
      case 'optim-step':
        await engine.optimStep(session.name, operation.adam);
        break;
      case 'load-state': {
        const directory = await tools.registry.directory(session.workspaceId, operation.version);
        await engine.loadState(session.name, { directory, loadOptimizer: operation.loadOptimizer });
        break;
      }
      default:
        break; // nothing else changes a session
    }
  }
}
