/** What the guard costs a step: `npx tsx test/guard/cost.ts` prints milliseconds by the size of the step. */
import { createGuard, createRandom, rlDatum } from 'loopwright';

const sizes = [
  { groups: 8, samples: 8, tokens: 64 },
  { groups: 32, samples: 8, tokens: 256 },
  { groups: 64, samples: 8, tokens: 1024 },
] as const;
const steps = 30;

for (const { groups: P, samples: G, tokens: T } of sizes) {
  const random = createRandom(1);
  const guard = createGuard({ onAlarm: () => 'continue' });
  const times: number[] = [];
  for (let step = 1; step <= steps; step++) {
    const list = (length: number, value: () => number) => Array.from({ length }, value);
    const prompt = list(64, () => random.integer(50_000));
    const groups = Array.from({ length: P }, () => ({
      prompt,
      samples: Array.from({ length: G }, () => ({
        tokens: list(T, () => random.integer(50_000)),
        logprobs: list(T, () => -random.next()),
        stopReason: 'stop' as const,
        reward: random.integer(2),
      })),
    }));
    const samples = groups.flatMap((group) => group.samples);
    const data = samples.map((sequence) => rlDatum({ prompt, sequence, advantage: 1 }));
    const sources = samples.map(({ tokens }) => ({
      parts: [
        { kind: 'prompt' as const, tokens: prompt },
        { kind: 'sampled' as const, tokens },
      ],
    }));
    const outputs = data.map(({ lossFnInputs }) => ({
      logprobs: Array.from<unknown, number>(lossFnInputs.logprobs, Number),
    }));
    const update = { metrics: { 'optim/grad_norm': 1 + random.next(), 'optim/step': step } };
    const start = performance.now();
    await guard.observe({ step, sampler: {}, groups, data, sources, outputs, update, learningRate: 1e-4 });
    times.push(performance.now() - start);
  }
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor(share * (steps - 1))]!.toFixed(1);
  console.log(`| ${P} × ${G} × ${T} | ${P * G * T} | ${at(0.5)} | ${at(0)}–${at(1)} |`);
}
