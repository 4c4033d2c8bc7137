/** Makes a session in an engine: a new one, or the equal of one that was lost, from its log. */
import type { Engine, ExecutionPlan } from '@loopwright/engine';
import type { SessionRecord } from '../sessions/session-record.js';
import type { ExecutionTools } from './execute.js';
import { planRebuild } from './rebuild-plan.js';

export interface Rebuild {
  readonly engine: Engine;
  readonly session: SessionRecord;
  /** Operations from this number on have not had their turn. */
  readonly nextSequenceNumber: number;
  readonly tools: Pick<ExecutionTools, 'log' | 'registry'>;
}

/** Returns the session's plan: the recorded one where there is one, so that a rebuilt session computes the same bits. */
export async function rebuildSession({ engine, session, nextSequenceNumber, tools }: Rebuild): Promise<ExecutionPlan> {
  const { log, registry } = tools;
  await engine.closeSession(session.name); // a half-made one of an earlier attempt
  const plan = await engine.createSession(session.spec, session.plan === null ? {} : { plan: session.plan });
  const past = (await log.training(session.id)).filter(({ sequenceNumber }) => sequenceNumber < nextSequenceNumber);
  const available = new Set<string>();
  for (const { readsVersion, resolved } of past) {
    for (const version of [readsVersion, resolved.version ?? null]) {
      if (version !== null && (await registry.files(session.workspaceId, version)).length > 0) available.add(version);
    }
  }
  const { anchor, replay } = planRebuild(past, (version) => available.has(version));
  if (anchor !== undefined) {
    const directory = await registry.directory(session.workspaceId, anchor.version);
    await engine.loadState(session.name, { directory, loadOptimizer: anchor.loadOptimizer });
  }
  for (const { type, record } of replay) {
    if (type === 'clear') {
      await engine.clearGradient(session.name);
      continue;
    }
    const operation = await log.operation(record);
    switch (operation.type) {
      case 'forward-backward':
        await engine.pass(session.name, operation, { isRepeat: true });
        break;
      case 'optim-step':
        await engine.optimStep(session.name, operation.adam);
        break;
      case 'load-state': {
        const directory = await registry.directory(session.workspaceId, operation.version);
        await engine.loadState(session.name, { directory, loadOptimizer: operation.loadOptimizer });
        break;
      }
      default:
        break; // nothing else changes a session
    }
  }
  return plan;
}
