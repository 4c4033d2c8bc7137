/** What the RL loops know of a step, as facts for the guard. */
import { isFailure } from '../environments/environment.js';
import type { EpisodeRollout } from '../episodes/run-episode.js';
import type { SampledRollouts } from '../runs/run-samples.js';
import type { Rollout } from '../training/rollouts.js';
import type { GroupFacts, SampleFacts } from './facts.js';

/** A group of answers or of episodes. */
export function groupFacts({ prompt, rollouts, age }: SampledRollouts & { readonly age?: number }): GroupFacts {
  return {
    samples: rollouts.map((rollout) => ('turns' in rollout ? episodeFacts(rollout) : answerFacts(rollout))),
    ...(prompt === undefined ? {} : { prompt }),
    ...(age === undefined ? {} : { age }),
  };
}

function answerFacts({ sequence, grade, reward }: Rollout): SampleFacts {
  const { tokens, logprobs, stopReason } = sequence;
  return { tokens, logprobs, stopReason, status: grade.status, ...(reward === undefined ? {} : { reward }) };
}

function episodeFacts({ turns, grade, reward, retokenizedTurns }: EpisodeRollout): SampleFacts {
  const answers = turns.map(({ sequence }) => sequence);
  const isJudged = grade !== undefined && (reward !== undefined || !isFailure(grade));
  return {
    tokens: answers.flatMap(({ tokens }) => tokens),
    logprobs: answers.flatMap(({ logprobs }) => logprobs),
    stopReason: answers.some(({ stopReason }) => stopReason === 'length') ? 'length' : 'stop',
    ...(isJudged || grade !== undefined ? { status: grade.status } : {}),
    ...(reward === undefined ? {} : { reward }),
    retokenizedTurns,
  };
}
