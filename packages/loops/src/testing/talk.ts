/** An episode that says what it is told to. */

import type { Episode, EpisodeEnvironment, EpisodeProblem, Reply } from '../episodes/environment.js';
import type { EpisodeRollout } from '../episodes/run-episode.js';
import { type RunEpisodesOptions, runEpisodes } from '../episodes/run-episodes.js';
import { chatTokenizer, type Scripted, ScriptedSampler } from './chat.js';

export const problem: EpisodeProblem = { id: 'p' };

/** Says `replies` one after the other, then the grade. */
export function talk(
  replies: readonly string[],
  extra: Partial<EpisodeEnvironment> & Partial<Episode> = {},
): EpisodeEnvironment {
  const { unfinished, close, ...environment } = extra;
  return {
    name: 'talk',
    draw: () => problem,
    begin: () => ({
      messages: [{ role: 'user', content: 'Hello' }],
      respond: ({ index }): Reply =>
        index < replies.length
          ? { messages: [{ role: 'user', content: replies[index]! }], reward: 0.25 }
          : { grade: { status: 'ok', reward: 1 } },
      ...(unfinished === undefined ? {} : { unfinished }),
      ...(close === undefined ? {} : { close }),
    }),
    ...environment,
  };
}

const tokenizer = chatTokenizer();

/** One rollout, in which the model says what it is told to, then nothing. */
export async function one(
  environment: EpisodeEnvironment,
  said: readonly Scripted[],
  options: Partial<RunEpisodesOptions<EpisodeProblem>> = {},
): Promise<{ rollout: EpisodeRollout; sampler: ScriptedSampler }> {
  const sampler = new ScriptedSampler(
    options.tokenizer ?? tokenizer,
    () => said[sampler.asked.length - 1] ?? '<|im_end|>',
  );
  const shared = { sampler, tokenizer, environment, problems: [problem], groupSize: 1, maxFailureShare: 1 };
  const [group] = await runEpisodes({ ...shared, ...options });
  return { rollout: group!.rollouts[0]!, sampler };
}
