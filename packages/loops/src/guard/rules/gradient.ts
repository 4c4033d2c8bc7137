/** The norm of the gradient, before clipping. */
import { LoopwrightError } from '@loopwright/protocol';
import { alarmRule } from '../rule.js';
import { median } from '../windows.js';

const norm = 'optim/grad_norm';

export const gradientNotFinite = alarmRule({
  name: 'guard/gradient-not-finite',
  levels: ['stop'],
  what: 'the gradient is NaN or infinite',
  remedy:
    'look for advantages, weights or a loss of your own that run out of range; lower the learning rate; go on from the last checkpoint',
  needs: '`update`, or `failure`',
  limits: {},
  explains: ['guard/ratio', 'guard/gradient-exploding'],
  look({ now: { metrics, facts } }) {
    const { failure } = facts;
    if (LoopwrightError.isInstance(failure) && failure.code === 'operation_failed') {
      const { field, expected, got } = failure.details;
      if (/\bfinite\b/.test(String(expected)))
        return { level: 'stop', seen: `the engine refused it: ${field} is ${got}` };
    }
    const value = metrics[norm];
    if (value === undefined || Number.isFinite(value)) return undefined;
    return { level: 'stop', seen: `the norm of the gradient is ${value}` };
  },
});

export const gradientZero = alarmRule({
  name: 'guard/gradient-zero',
  levels: ['warn', 'stop'],
  what: 'the gradient is zero although there was something to train on',
  remedy: 'look at the advantages and weights of the data; a ppo loss whose every token is clipped has none either',
  needs: '`update`, `data`',
  limits: {
    tiny: { value: 1e-12, why: 'norm below which it counts as zero: float32 gradients of real data are above 1e-6' },
    stopAfter: { value: 5, why: 'steps in a row: each of them moves the weights by old momentum only' },
  },
  look({ now: { metrics, isUpdate, facts, rewards_PG }, past, limits }) {
    const value = metrics[norm];
    // Equal rewards have no gradient by right, and alarms of their own.
    const isDead = rewards_PG.length > 0 && rewards_PG.every((row) => row.every((reward) => reward === row[0]));
    const trained = facts.data?.length ?? metrics['tokens/trained'] ?? 0;
    if (isDead || !isUpdate || value === undefined || value > limits.tiny || !(trained > 0)) return undefined;
    const earlier = past.steps.slice(-(limits.stopAfter - 1));
    const isLong =
      earlier.length === limits.stopAfter - 1 && earlier.every((step) => (step.metrics[norm] ?? 1) <= limits.tiny);
    return { level: isLong ? 'stop' : 'warn', seen: `the norm of the gradient of ${trained} datums is ${value}` };
  },
});

export const gradientExploding = alarmRule({
  name: 'guard/gradient-exploding',
  levels: ['warn'],
  what: 'the gradient is many times what it was',
  remedy: 'clip it (gradClipNorm), lower the learning rate, and look at the rewards and advantages of the step',
  needs: '`update`',
  limits: {
    times: {
      value: 10,
      why: 'the median of the window; losses are sums, so the norm follows the number of datums, and the norm by datum has to be as high',
    },
    window: { value: 20, why: 'steps with an update' },
    minSteps: { value: 5, why: 'of them, before it is judged' },
  },
  look({ now: { metrics, facts }, past, limits }) {
    const value = metrics[norm];
    const earlier = past.steps.filter((step) => (step.metrics[norm] ?? 0) > 0).slice(-limits.window);
    if (value === undefined || earlier.length < limits.minSteps) return undefined;
    const usual = median(earlier.map((step) => step.metrics[norm]!));
    const byDatum = median(earlier.map((step) => step.metrics[norm]! / Math.max(1, step.datums)));
    const ownByDatum = value / Math.max(1, facts.data?.length ?? 1);
    if (!(value > limits.times * usual && ownByDatum > limits.times * byDatum)) return undefined;
    return {
      level: 'warn',
      seen: `the norm of the gradient is ${value.toPrecision(3)}, ${(value / usual).toFixed(0)} times the median of the ${earlier.length} steps before (${usual.toPrecision(3)})`,
    };
  },
});
