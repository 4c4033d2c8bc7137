/** How what this wire calls models and sampling sessions is named as sessions of the service. */
import { createHash } from 'node:crypto';
import { splitPinned } from '@loopwright/protocol';
import { modelId, parseModelId } from '@loopwright/wires/tinker';

/** The session of a model. @throws `unknown_session` */
export function sessionNameOf(id: unknown): string {
  const { sessionId, number } = parseModelId(id);
  return `${sessionId}-train-${number}`;
}

/** The model of a session; undefined for one that only samples. */
export function modelIdOf(sessionName: string): string | undefined {
  const [, sessionId, number] = /^(.{36})-train-(\d+)$/.exec(sessionName) ?? [];
  return sessionId === undefined ? undefined : modelId(sessionId, Number(number));
}

/** Where the samplers of a client sample: one session for each base model. */
export function samplingSessionName(sessionId: string, baseModel: string): string {
  return `${sessionId}-sample-${createHash('sha256').update(baseModel).digest('hex').slice(0, 8)}`;
}

/** A base model as clients name it: without the commit that its files were found at. */
export function baseModelName(id: string): string {
  return splitPinned(id).repository;
}
