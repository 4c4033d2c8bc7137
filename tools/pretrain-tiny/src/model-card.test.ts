import { expect, it } from 'vitest';
import { modelCard } from './model-card.js';
import { pretrainingSettings } from './settings.js';

it('states what was measured with n and interval, and the mistakes of the textbook', () => {
  const share = (correct: number) => ({ correct, n: 1000, interval: { low: 0.41, high: 0.5275 } });
  const card = modelCard({
    settings: {
      ...pretrainingSettings,
      corpus: { ...pretrainingSettings.corpus, forgottenCarries: 0.25, unanswered: 0.125 },
    },
    measurement: {
      sampled: share(471),
      twoDigits: share(5),
      oneDigit: share(6),
      greedy: share(2),
      bestOfEight: share(3),
      chat: share(4),
    },
  });
  expect(card).toContain('| one sample at temperature 1 | 47.1 % | 1000 | 41.0–52.8 % |');
  expect(card).toMatch(/leaves 13 % of its problems[\s\S]*25 % of the\s+printed answers forget it/);
  expect(card).not.toMatch(/undefined|NaN|\[object/);
});
