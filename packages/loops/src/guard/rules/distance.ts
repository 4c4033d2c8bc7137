/** The distance to the reference, and the learning rate. */
import { alarmRule } from '../rule.js';
import { valuesOf } from '../windows.js';

const kl = 'kl/base';

export const klSpike = alarmRule({
  name: 'guard/kl-spike',
  levels: ['warn'],
  what: 'the distance to the reference is many times what it was',
  remedy:
    'lower the learning rate, clip the gradient, or raise the KL coefficient; look at the step’s rewards and gradient first',
  needs: '`kl/base`',
  limits: {
    times: {
      value: 10,
      why: 'the highest of the window: from the base on the distance grows by itself, and k3 has a heavy tail; in twelve clean runs it was 5 times the highest before at most, where it was above `least`',
    },
    least: { value: 0.2, why: 'nats a token: below it clean runs of the bundled model come within ten steps' },
    window: { value: 10, why: 'measurements before' },
    minSteps: { value: 5, why: 'of them, before it is judged' },
  },
  look({ now: { metrics }, past, limits }) {
    const value = metrics[kl];
    const earlier = valuesOf(past.steps, kl).slice(-limits.window);
    if (value === undefined || earlier.length < limits.minSteps) return undefined;
    const highest = Math.max(...earlier);
    if (!(value > limits.least && value > limits.times * highest)) return undefined;
    return {
      level: 'warn',
      seen: `${value.toPrecision(3)} nats a token, where the highest of ${earlier.length} measurements was ${highest.toPrecision(3)}`,
    };
  },
});

export const klZero = alarmRule({
  name: 'guard/kl-zero',
  levels: ['warn'],
  what: 'the distance to the reference stays at 0 although the model is trained',
  remedy:
    'take as reference a client of the base model or of a fixed version, not one that follows the training session; see that the learning rate is not too small to move anything',
  needs: '`kl/base`, `update`',
  limits: {
    tiny: {
      value: 1e-10,
      why: 'nats a token: k3 of differences of 1e-5, more than rounding makes on the embedded engine, is 5e-11',
    },
    minUpdates: { value: 5, why: 'optimizer steps before: adapters begin at 0, and the first steps are small' },
  },
  look({ now: { metrics }, past, limits }) {
    const value = metrics[kl];
    if (value === undefined || past.updates < limits.minUpdates || !(Math.abs(value) <= limits.tiny)) return undefined;
    return { level: 'warn', seen: `${value.toPrecision(2)} nats a token after ${past.updates} optimizer steps` };
  },
});

const rate = 'optim/lr';

export const learningRate = alarmRule({
  name: 'guard/learning-rate',
  levels: ['warn'],
  what: 'the learning rate is outside the band in which training of this kind works',
  remedy:
    'LoRA wants about ten times the rate of full fine-tuning: begin at 1e-4 for LoRA and at 1e-5 for all weights; a small model takes more',
  needs:
    '`learningRate` or `update`; what is trained, if not an adapter: a loop takes it from its training client, a guard of your own from `training`',
  limits: {
    loraLow: { value: 5e-6, why: 'LoRA: half of a usual rate of full fine-tuning, at which an adapter hardly moves' },
    loraHigh: {
      value: 5e-3,
      why: 'LoRA: the largest at which the bundled model of a few million parameters still learns',
    },
    fullLow: { value: 1e-8, why: 'all weights: float32 has no smaller steps at weights of 0.1' },
    fullHigh: { value: 5e-4, why: 'all weights: above it even small models forget what they were pretrained on' },
    minUpdates: { value: 3, why: 'optimizer steps before a low one counts: warm-up begins at 0' },
  },
  look({ now: { metrics }, past, limits, training }) {
    const value = metrics[rate];
    if (value === undefined) return undefined;
    const [low, high] = training === 'full' ? [limits.fullLow, limits.fullHigh] : [limits.loraLow, limits.loraHigh];
    const highest = Math.max(value, ...valuesOf(past.steps, rate));
    const isLow = past.updates >= limits.minUpdates && highest < low;
    if (!isLow && value <= high) return undefined;
    const kind = training === 'full' ? 'all weights' : 'LoRA';
    return { level: 'warn', seen: `${value} for ${kind}, where ${low} to ${high} is usual` };
  },
});
