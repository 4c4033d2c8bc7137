/** Ids of models and paths of saved versions. */
import { complaint } from '@loopwright/protocol';
import { describeValue, stringAt } from '../checks.js';

/** `weights`: weights and optimizer; `sampler_weights`: to sample from; `external_weights`: to download. */
export const saveKinds = ['weights', 'sampler_weights', 'external_weights'] as const;
export type SaveKind = (typeof saveKinds)[number];

/** A version saved under a name. */
export interface SavePath {
  readonly modelId: string;
  readonly kind: SaveKind;
  readonly name: string;
}

/** The model that a session made as its n-th, from 0. */
export function modelId(sessionId: string, number: number): string {
  return `${sessionId}:train:${number}`;
}

/** @throws `unknown_session` for what can't be the id of a model */
export function parseModelId(value: unknown, field = 'model_id'): { sessionId: string; number: number } {
  const [, sessionId, number] = /^([0-9a-f-]{36}):train:(\d{1,9})$/.exec(typeof value === 'string' ? value : '') ?? [];
  if (sessionId !== undefined && number !== undefined) return { sessionId, number: Number(number) };
  throw complaint({
    code: 'unknown_session',
    field,
    expected: 'the id of a model of this server, SESSION:train:NUMBER',
    got: describeValue(value),
    remedy: 'create a model, or give the id that create_model returned',
  });
}

export function savePath({ modelId: id, kind, name }: SavePath): string {
  return `tinker://${id}/${kind}/${name}`;
}

/** @throws `unknown_version` for what can't be the path of a saved version */
export function parseSavePath(value: unknown, field: string): SavePath {
  const [, id, kind, name] =
    /^tinker:\/\/([^/]+)\/([^/]+)\/([^/]+)$/.exec(typeof value === 'string' ? value : '') ?? [];
  const known = saveKinds.find((one) => one === kind);
  if (id !== undefined && known !== undefined && name !== undefined) return { modelId: id, kind: known, name };
  throw complaint({
    code: 'unknown_version',
    field,
    expected: `tinker://MODEL/(${saveKinds.join('|')})/NAME`,
    got: describeValue(value),
    remedy: 'give the path that the save returned',
  });
}

/** Names of saves: they are a part of their paths. */
export function saveNameAt(value: unknown, field: string): string {
  const name = stringAt(value, field, { min: 1, max: 255, pattern: /^[A-Za-z0-9._-]+$/ });
  if (/^\.+$/.test(name)) throw complaint({ field, expected: 'a name with a letter or digit', got: 'dots only' });
  return name;
}
