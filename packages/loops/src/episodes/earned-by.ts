/** What a turn earned that doesn't end its episode. */
import { complaint } from '@loopwright/protocol';
import { kindOf } from '../data/row.js';
import type { Reply } from './environment.js';

/** @throws `invalid_argument` for a reward that is no finite number */
export function earnedBy({ reward = 0 }: Exclude<Reply, { readonly grade: unknown }>): number {
  if (Number.isFinite(reward)) return reward;
  const got = typeof reward === 'number' ? String(reward) : kindOf(reward); // environments in JavaScript give what they like
  throw complaint({ field: 'reply.reward', expected: 'a finite number', got, remedy: 'mend the environment' });
}
