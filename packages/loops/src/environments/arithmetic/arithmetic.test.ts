import { describe, expect, it } from 'vitest';
import { createRandom } from '../../random.js';
import { arithmetic } from './environment.js';
import { gradeArithmetic } from './grader.js';
import { allProblems, arithmeticProblem, arithmeticSpace } from './problems.js';
import { arithmeticSplit, arithmeticSplits } from './split.js';

const whole = arithmeticSpace({ level: 2, operations: ['+', '-', '*'], negative: true });

describe('the split', () => {
  it('puts every problem of the whole space in exactly one set, each of a fair size', () => {
    const sets = new Map(arithmeticSplits.map((split) => [split, new Set<string>()]));
    let count = 0;
    for (const problem of allProblems(whole)) {
      sets.get(arithmeticSplit(problem))?.add(problem.id);
      count += 1;
    }
    const [pretrain, rl, heldOut] = arithmeticSplits.map((split) => sets.get(split) ?? new Set<string>());
    expect(count).toBe(100 * 100 * 2 + 13 * 13);
    expect(new Set([...pretrain!, ...rl!, ...heldOut!]).size).toBe(count);
    expect(pretrain!.size + rl!.size + heldOut!.size).toBe(count);
    expect(heldOut!.size / count).toBeCloseTo(0.1, 1);
    expect(rl!.size / count).toBeCloseTo(0.4, 1);
  });

  it('keeps a + b and b + a together', () => {
    for (const { a, b, operation } of allProblems(whole)) {
      if (operation === '-') continue;
      expect(arithmeticSplit({ a, b, operation })).toBe(arithmeticSplit({ a: b, b: a, operation }));
    }
  });

  it('does not depend on the level or on how a problem was drawn', () => {
    const [seven] = [...allProblems(arithmeticSpace({ level: 1 }))];
    expect(arithmeticSplit(seven!)).toBe(arithmeticSplit(arithmeticProblem(seven!.a, seven!.operation, seven!.b)));
  });

  it('stays as the bundled model was trained', () => {
    const problems = [arithmeticProblem(12, '+', 7), arithmeticProblem(45, '-', 18), arithmeticProblem(6, '*', 7)];
    expect(problems.map(arithmeticSplit)).toMatchInlineSnapshot(`
      [
        "pretrain",
        "rl",
        "rl",
      ]
    `);
  });

  it('separates what is drawn for pretraining, for rewards and for judging', () => {
    const environment = arithmetic();
    const random = createRandom(5);
    const pretrained = environment.problems({ split: 'pretrain', count: 3000, seed: 5 });
    const trained = new Set(pretrained.map(({ id }) => id));
    for (let i = 0; i < 3000; i++) trained.add(environment.draw(random).id);
    const heldOut = environment.problems({ split: 'held-out', count: 300, seed: 9 });
    expect(new Set(heldOut.map(({ id }) => id)).size).toBe(300);
    expect(heldOut.filter(({ id }) => trained.has(id))).toEqual([]);
  });
});

describe('arithmetic problems', () => {
  it('are written and solved', () => {
    expect(arithmeticProblem(12, '+', 7)).toMatchObject({ question: '12+7=', answer: '19' });
    expect(arithmeticProblem(45, '-', 18)).toMatchObject({ question: '45-18=', answer: '27' });
    expect(arithmeticProblem(6, '*', 7)).toMatchObject({ question: '6*7=', answer: '42' });
  });

  it('have no answer below 0 unless that is asked for', () => {
    const random = createRandom(1);
    const answers = Array.from({ length: 500 }, () => Number(arithmetic().draw(random).answer));
    expect(Math.min(...answers)).toBeGreaterThanOrEqual(0);
    const below = Array.from({ length: 500 }, () => Number(arithmetic({ negative: true }).draw(random).answer));
    expect(Math.min(...below)).toBeLessThan(0);
  });

  it('are the same for the same seed', () => {
    const draw = (seed: number): string[] => {
      const random = createRandom(seed);
      return Array.from({ length: 20 }, () => arithmetic({ level: 3, operations: ['+', '-', '*'] }).draw(random).id);
    };
    expect(draw(4)).toEqual(draw(4));
    expect(draw(4)).not.toEqual(draw(5));
  });

  it('are refused for impossible options', () => {
    expect(() => arithmetic({ maxOperand: 0 })).toThrow('maxOperand');
    expect(() => arithmetic({ operations: [] })).toThrow('operations');
    expect(() => arithmetic({ level: 9 as 1 })).toThrow('level');
    expect(() => arithmetic({ maxOperand: 3 }).problems({ split: 'rl', count: 1000, seed: 0 })).toThrow('at most');
  });
});

describe('the grader', () => {
  const problem = arithmeticProblem(12, '+', 7);
  const grade = (text: string) => gradeArithmetic({ problem, text, stopReason: 'length' });

  it('rewards the bare number, however the answer ended', () => {
    for (const text of ['19', ' 19 ', '19\n12+8=20', '\n19']) expect(grade(text)).toEqual({ status: 'ok', reward: 1 });
    expect(grade('18')).toEqual({ status: 'ok', reward: 0 });
    expect(grade('-19')).toEqual({ status: 'ok', reward: 0 });
  });

  it('tells an answer that is no number from a wrong one', () => {
    for (const text of ['', 'x', '=19', '19=', '1 9', '12+7=19', '019', '1e1', '\u001b19', '1'.repeat(40)]) {
      expect(grade(text)).toEqual({ status: 'unparsed', reward: 0 });
    }
  });
});
