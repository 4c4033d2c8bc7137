/** What `model` may say, as a list in OpenAI's shape. */
import type { JsonObject } from '../checks.js';

/** A thing that answers: a base model, a live session or a saved version. */
export interface ServedModel {
  readonly id: string;
  readonly kind: 'base' | 'session' | 'version';
  /** Its base model. */
  readonly root: string;
  readonly createdAtMs: number;
}

/** `root` and `parent` as other servers of adapters have them. */
export function encodeModel({ id, kind, root, createdAtMs }: ServedModel): JsonObject {
  return {
    id,
    object: 'model',
    created: Math.floor(createdAtMs / 1000),
    owned_by: 'loopwright',
    root,
    parent: kind === 'base' ? null : root,
    loopwright: { kind },
  };
}
