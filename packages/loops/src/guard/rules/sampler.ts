/** Whether answers come from the weights that they are trained on, and from the policy. */
import type { History } from '../history.js';
import type { Observation } from '../observation.js';
import { alarmRule } from '../rule.js';

/** Optimizer steps since the sampler of the step was first used; 0 where it is new, or none was told. */
export function samplerAge({ facts: { sampler } }: Observation, { samplers, updates }: History): number {
  if (sampler === undefined) return 0;
  return updates - (samplers.seenAt.get(sampler) ?? updates);
}

const maxStepsOffPolicy = {
  value: 0,
  why: 'optimizer steps that a sampler may be old; the loops set it by their own maxStepsOffPolicy',
} as const;

export const staleSampler = alarmRule({
  name: 'guard/stale-sampler',
  levels: ['warn'],
  what: 'answers come from weights that are older than is allowed',
  remedy:
    'save the weights after each optimizer step and sample from that save; or allow the age with maxStepsOffPolicy and a loss that corrects for it (cispo)',
  needs: '`sampler`, or the `age` of `groups`',
  limits: { maxStepsOffPolicy },
  look({ now, past, limits }) {
    const { sampler } = now.facts;
    const isFirst = sampler !== undefined && past.samplers.first?.deref() === sampler;
    const ofGroups = Math.max(0, ...now.groups.map(({ age = 0 }) => age));
    const age = Math.max(isFirst ? 0 : samplerAge(now, past), ofGroups);
    if (age <= limits.maxStepsOffPolicy) return undefined;
    return { level: 'warn', seen: `the sampler is ${age} optimizer steps old, of ${limits.maxStepsOffPolicy} allowed` };
  },
});

export const samplerNeverRefreshed = alarmRule({
  name: 'guard/sampler-never-refreshed',
  levels: ['warn'],
  what: 'all answers still come from the weights of the first step',
  remedy: 'call saveWeightsAndGetSamplingClient after each optimizer step and sample from what it returns',
  needs: '`sampler`',
  limits: { maxStepsOffPolicy },
  explains: ['guard/stale-sampler', 'guard/ratio'],
  look({ now, past, limits }) {
    const { sampler } = now.facts;
    const age = samplerAge(now, past);
    if (sampler === undefined || past.samplers.first?.deref() !== sampler || age <= limits.maxStepsOffPolicy)
      return undefined;
    return { level: 'warn', seen: `the same sampler since the first step, over ${age} optimizer steps` };
  },
});

export const samplingPolicy = alarmRule({
  name: 'guard/sampling-policy',
  levels: ['note'],
  what: 'answers are drawn from another policy than the one that is trained: by temperature, or by truncation',
  remedy: 'sample at temperature 1 without topP and topK; or keep it, knowing that the gradient is biased by as much',
  needs: '`sampling`; for the size of a temperature, `groups` with `logprobs`',
  limits: {},
  look({ now }) {
    const { temperature = 1, topP = 1, topK = -1 } = now.facts.sampling ?? {};
    const parts = [
      ...(temperature === 1 ? [] : [temperatureText(now, temperature)]),
      ...(topP < 1 ? [`top p ${topP}: up to ${(-Math.log(topP)).toPrecision(2)} nats a token`] : []),
      ...(topK > 0 ? [`top k ${topK}: by what the tokens beyond would have had`] : []),
    ];
    if (parts.length === 0) return undefined;
    return {
      level: 'note',
      seen: `${parts.join('; ')}. Logprobs and gradients are those of temperature 1 over all tokens, so the ratio does not correct it`,
    };
  },
});

/** ln q − ln p = (1/T − 1) ln p + a constant of the position: what varies from token to token is told. */
function temperatureText({ samples }: Observation, temperature: number): string {
  let [sum, tokens] = [0, 0];
  for (const { logprobs } of samples) {
    for (let i = 0; i < (logprobs?.length ?? 0); i++) sum -= logprobs![i]!;
    tokens += logprobs?.length ?? 0;
  }
  if (tokens === 0) return `temperature ${temperature}`;
  if (temperature === 0) return 'temperature 0: each answer is the likeliest one, whatever its probability';
  const size = Math.abs(1 / temperature - 1) * (sum / tokens);
  return `temperature ${temperature}: (1/T − 1)·ln p is ${size.toPrecision(2)} nats a token in the mean of ${tokens}`;
}
