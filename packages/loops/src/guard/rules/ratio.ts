/** The importance ratio where it has to be 1. */

import { weightsOf } from '../datum-weights.js';
import { alarmRule } from '../rule.js';
import { samplerAge } from './sampler.js';

interface Worst {
  readonly datum: number;
  readonly position: number;
  readonly tokenId: number;
  readonly trainer: number;
  readonly sampler: number;
}

export const ratio = alarmRule({
  name: 'guard/ratio',
  levels: ['warn', 'stop'],
  what: 'trainer and sampler disagree about the same tokens at equal weights, so the importance ratio is not 1',
  remedy:
    'look at the datum with explain; sample from weights that were saved after the last step, and train the ids and logprobs that were sampled as they are; where you sample in int8, set both limits above what it shows',
  needs: '`data` with `logprobs`, `outputs`',
  limits: {
    tolerance: {
      value: 1e-3,
      why: 'nats, of one token: ten times what the embedded engine promises (1e-4). Engines that compute in bfloat16 differ by 0.01 to 0.1, sampling in int8 by up to 2; set it to what yours shows in the first step',
    },
    stopMean: {
      value: 0.1,
      why: 'nats, mean over tokens: no rounding to 16 bits or more comes near it, so these are other weights or other tokens. Sampling in int8 does: 0.26 on SmolLM2-135M; set it to twice what `loopwright serve` tells',
    },
  },
  look({ now, past, limits }) {
    const { data = [], outputs = [], sources = [] } = now.facts;
    const age = samplerAge(now, past);
    let worst: Worst | undefined;
    let [largest, sum, tokens] = [-1, 0, 0];
    for (const [i, datum] of data.entries()) {
      const sampled = datum.lossFnInputs.logprobs;
      const trained = outputs[i]?.logprobs;
      if (sampled === undefined || trained === undefined || Math.max(sources[i]?.age ?? 0, age) > 0) continue;
      const weights = weightsOf(datum);
      for (let t = 0; t < datum.modelInput.length; t++) {
        if (weights[t] === 0) continue;
        const [trainer, sampler] = [Number(trained[t]), Number(sampled[t])];
        const difference = Math.abs(trainer - sampler);
        const badness = Number.isNaN(difference) ? Number.POSITIVE_INFINITY : difference;
        sum += badness;
        tokens += 1;
        if (badness <= largest) continue;
        largest = badness;
        const tokenId = Number(datum.lossFnInputs.targetTokens[t]);
        worst = { datum: i, position: t, tokenId, trainer, sampler };
      }
    }
    if (worst === undefined || !(largest > limits.tolerance)) return undefined;
    const mean = sum / tokens;
    const ratio = Math.exp(worst.trainer - worst.sampler);
    return {
      level: mean > limits.stopMean ? 'stop' : 'warn',
      seen: `|ln ratio| is ${mean.toPrecision(3)} in the mean of ${tokens} tokens and ${largest.toPrecision(3)} at most, where weights are equal`,
      where: `worst: datum ${worst.datum}, position ${worst.position}, token id ${worst.tokenId}: trainer ${worst.trainer.toFixed(4)}, sampler ${worst.sampler.toFixed(4)}, ratio ${ratio.toPrecision(4)}`,
    };
  },
});
