import { createRandom } from 'loopwright';
import { expect, test } from 'vitest';
import { environment } from './environment.js';
import { grade } from './grader.js';

test('the right number is worth 1, another one 0, and no number is told apart', () => {
  expect(grade('34', 34)).toEqual({ status: 'ok', reward: 1 });
  expect(grade(' 34\n', 34)).toEqual({ status: 'ok', reward: 1 });
  expect(grade('35', 34)).toEqual({ status: 'ok', reward: 0 });
  expect(grade('34 or 35', 34)).toEqual({ status: 'unparsed', reward: 0 });
  expect(grade('', 34)).toEqual({ status: 'unparsed', reward: 0 });
});

test('the answer of every problem that is drawn counts as right', async () => {
  const random = createRandom(1);
  for (let i = 0; i < 100; i++) {
    const problem = environment.draw(random);
    const verdict = await environment.grade({ problem, text: problem.answer, stopReason: 'stop' });
    expect(verdict).toEqual({ status: 'ok', reward: 1 });
  }
});
