/** Datums of recorded turns: what was sampled is trained as it was sampled, without being encoded again. */
import type { DatumFor } from '@loopwright/protocol';
import type { RlLossName } from '../datums/rl-datum.js';
import { episodeDatums } from '../episodes/episode-datums.js';
import type { EpisodeSequence, Segment } from '../episodes/transcript.js';
import type { RecordedTurn } from './turn-recorder.js';

export interface RecordedDatumsOptions {
  readonly turns: readonly RecordedTurn[];
  /** Of every sampled token, or one number for each turn. */
  readonly advantage: number | readonly number[];
}

/**
 * As `episodeDatums`: turns whose prompt goes on from an earlier one and its answer, id by id, share a datum with it. Where the prompt was
 * written otherwise (a template that drops reasoning, a text with other ids when it is encoded again, an agent that forgets) a new one begins.
 *
 * @throws `invalid_argument` for advantages of another number, or not finite
 */
export function recordedDatums({ turns, advantage }: RecordedDatumsOptions): DatumFor<RlLossName>[] {
  return episodeDatums({ rollout: { sequences: recordedSequences(turns), turns }, advantage });
}

interface Open {
  readonly tokens: readonly number[];
  readonly segments: readonly Segment[];
}

/** Each turn behind the longest sequence that its prompt goes on from, in the order of their beginnings. */
export function recordedSequences(turns: readonly RecordedTurn[]): EpisodeSequence[] {
  const open: Open[] = [];
  for (const [turn, { prompt, answer }] of turns.entries()) {
    let at = -1;
    for (const [i, { tokens }] of open.entries()) {
      if (beginsWith(prompt, tokens) && tokens.length > (open[at]?.tokens.length ?? 0)) at = i;
    }
    const before = open[at] ?? { tokens: [], segments: [] };
    const context = prompt.slice(before.tokens.length);
    const longer = {
      tokens: [...prompt, ...answer.tokens],
      segments: [...before.segments, { context, answer, turn }],
    };
    open.splice(at < 0 ? open.length : at, at < 0 ? 0 : 1, longer);
  }
  return open.map(({ segments }) => segments);
}

function beginsWith(longer: readonly number[], beginning: readonly number[]): boolean {
  return longer.length > beginning.length && beginning.every((id, i) => id === longer[i]);
}
