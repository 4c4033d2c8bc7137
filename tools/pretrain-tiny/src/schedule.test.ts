import { expect, it } from 'vitest';
import { learningRateAt } from './schedule.js';

const schedule = { steps: 100, warmupSteps: 10, peak: 1e-3, final: 1e-5 };

it('rises to the peak by the end of the warm-up', () => {
  expect(learningRateAt(schedule, 1)).toBeCloseTo(1e-4, 12);
  expect(learningRateAt(schedule, 10)).toBeCloseTo(1e-3, 12);
});

it('falls from there to the final rate, half way in the middle', () => {
  expect(learningRateAt(schedule, 55)).toBeCloseTo((1e-3 + 1e-5) / 2, 12);
  expect(learningRateAt(schedule, 100)).toBeCloseTo(1e-5, 12);
  for (let step = 11; step <= 100; step++)
    expect(learningRateAt(schedule, step)).toBeLessThan(learningRateAt(schedule, step - 1));
});
