import { arithmeticProblem } from '@loopwright/loops';
import { arithmetic, createRandom } from 'loopwright';
import { describe, expect, it } from 'vitest';
import { carries, forgetfulAnswer, textbookExample } from './textbook.js';

describe('a forgetful answer', () => {
  it('lacks the carry of a sum and keeps the ten that a difference borrowed', () => {
    expect(forgetfulAnswer(arithmeticProblem(27, '+', 58))).toBe('75');
    expect(forgetfulAnswer(arithmeticProblem(99, '+', 99))).toBe('188');
    expect(forgetfulAnswer(arithmeticProblem(52, '-', 38))).toBe('24');
    expect(forgetfulAnswer(arithmeticProblem(10, '-', 9))).toBe('11');
  });

  it('is the right one where nothing is carried', () => {
    expect(forgetfulAnswer(arithmeticProblem(42, '+', 31))).toBe('73');
    expect(forgetfulAnswer(arithmeticProblem(47, '-', 12))).toBe('35');
  });
});

describe('the textbook', () => {
  const environment = arithmetic();
  const examples = (forgottenCarries: number, unanswered: number, count: number) => {
    const random = createRandom(5);
    return Array.from({ length: count }, () => textbookExample(environment, random, { forgottenCarries, unanswered }));
  };

  it('has each mistake as often as it is told', () => {
    const all = examples(0.6, 0.3, 20_000);
    const answered = all.filter(({ answer }) => answer !== '?');
    expect(1 - answered.length / all.length).toBeCloseTo(0.3, 1);
    const carrying = answered.filter(({ problem }) => carries(problem));
    const forgotten = carrying.filter(({ problem, answer }) => answer === forgetfulAnswer(problem));
    expect(forgotten.length / carrying.length).toBeCloseTo(0.6, 1);
    expect(carrying.filter(({ problem, answer }) => answer === problem.answer)).toHaveLength(
      carrying.length - forgotten.length,
    );
    for (const { problem, answer } of answered) if (!carries(problem)) expect(answer).toBe(problem.answer);
  });

  it('is right throughout without mistakes', () => {
    for (const { problem, answer } of examples(0, 0, 2000)) expect(answer).toBe(problem.answer);
  });
});
