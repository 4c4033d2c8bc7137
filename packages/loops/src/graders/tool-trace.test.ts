import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ToolCall } from '../episodes/environment.js';
import { type ToolTraceOptions, toolCallsOf, toolTrace } from './tool-trace.js';

const call = (name: string, args: Readonly<Record<string, unknown>> = {}): ToolCall => ({
  id: `${name}-0`,
  name,
  arguments: args,
});
const reward = (options: ToolTraceOptions, ...calls: ToolCall[]): number => {
  const grade = toolTrace(options)(calls);
  if (!('reward' in grade)) throw grade.error;
  return grade.reward;
};

describe('toolTrace', () => {
  const search = { name: 'search', arguments: { q: 'Oslo', page: { from: 1, to: 2 } } };
  it('compares arguments as JSON, whatever the order of keys', () => {
    const expected = [search];
    expect(reward({ expected }, call('search', { page: { to: 2, from: 1 }, q: 'Oslo' }))).toBe(1);
    expect(reward({ expected }, call('search', { page: { to: 2, from: 1 }, q: 'Oslo', n: 1 }))).toBe(0);
    expect(reward({ expected }, call('search', { page: { to: 2, from: '1' }, q: 'Oslo' }))).toBe(0);
    expect(reward({ expected }, call('find', search.arguments))).toBe(0);
    expect(reward({ expected: [{ name: 'a', arguments: { constructor: 1 } }] }, call('a'))).toBe(0);
  });

  it('takes more arguments where a subset is asked for, and any where none are named', () => {
    const expected = [{ name: 'search', arguments: { page: { from: 1 } }, match: 'subset' as const }];
    expect(reward({ expected }, call('search', { q: 'x', page: { from: 1, to: 9 } }))).toBe(1);
    expect(reward({ expected }, call('search', { q: 'x' }))).toBe(0);
    expect(reward({ expected: [{ name: 'search' }] }, call('search', { anything: null }))).toBe(1);
  });

  it('asks a function, and what that throws or does not say is an error of the grader with no reward', () => {
    const by = (rule: (args: Readonly<Record<string, unknown>>) => boolean) =>
      toolTrace({ expected: [{ name: 'a', arguments: rule }] });
    expect(by(({ n }) => Number(n) > 3)([call('a', { n: 4 })])).toMatchObject({ status: 'ok', reward: 1 });
    const broken = by(() => {
      throw new Error('no');
    })([call('a')]);
    expect(broken).toMatchObject({ status: 'grader_error', error: { message: 'no' } });
    expect(broken).not.toHaveProperty('reward');
    const vague = by((() => undefined) as unknown as () => boolean); // what a program without types may give
    expect(vague([call('a')])).toMatchObject({ status: 'grader_error' });
  });

  it('keeps the order, unless any will do', () => {
    const expected = [{ name: 'a' }, { name: 'b' }, { name: 'c' }];
    const [a, b, c] = [call('a'), call('b'), call('c')];
    expect(reward({ expected }, a, b, c)).toBe(1);
    expect(reward({ expected }, c, a, b)).toBeCloseTo(2 / 3);
    expect(reward({ expected, order: 'any' }, c, a, b)).toBe(1);
    expect(reward({ expected }, a, b)).toBeCloseTo(2 / 3);
  });

  it('lets extra calls cost, unless they are allowed', () => {
    const expected = [{ name: 'a' }];
    expect(reward({ expected }, call('x'), call('a'))).toBe(0.5);
    expect(reward({ expected, extra: 'allowed' }, call('x'), call('a'))).toBe(1);
    expect(reward({ expected: [] })).toBe(1);
    expect(reward({ expected: [] }, call('x'))).toBe(0);
  });

  it('pairs as many calls as can be, where one fits several', () => {
    const expected = [{ name: 'a' }, { name: 'a', arguments: { n: 1 } }];
    expect(reward({ expected, order: 'any' }, call('a', { n: 1 }), call('a', { n: 2 }))).toBe(1);
  });

  it('keeps forbidden tools and the budget apart, as components', () => {
    const grade = toolTrace({ expected: [{ name: 'a' }], extra: 'allowed', forbidden: ['delete'], maxCalls: 1 });
    expect(grade([call('a'), call('delete')])).toMatchObject({
      status: 'ok',
      reward: -0.5,
      components: [
        { name: 'calls', score: 1 },
        { name: 'forbidden', score: -1 },
        { name: 'budget', score: -1, weight: 0.5 },
      ],
    });
    expect(grade([call('a')])).toMatchObject({ reward: 1 });
  });

  it('gives any calls a reward from 0 to 1, and 1 to those that are expected', () => {
    const calls = fc.array(
      fc.record({
        id: fc.string(),
        name: fc.constantFrom('a', 'b'),
        arguments: fc.dictionary(fc.string(), fc.jsonValue()),
      }),
      { maxLength: 6 },
    );
    fc.assert(
      fc.property(calls, calls, fc.constantFrom('strict' as const, 'any' as const), (made, expected, order) => {
        const score = reward({ expected, order }, ...made);
        expect(score).toBeGreaterThanOrEqual(0);
        expect(score).toBeLessThanOrEqual(1);
        expect(reward({ expected, order }, ...expected)).toBe(1);
      }),
    );
  });

  it('reads the calls of an episode in order', () => {
    const turns = [{ toolCalls: [call('a'), call('b')] }, { toolCalls: [] }, { toolCalls: [call('c')] }];
    expect(toolCallsOf(turns).map(({ name }) => name)).toEqual(['a', 'b', 'c']);
  });

  it('refuses at construction what could only fail later, by name', () => {
    const refused = (options: ToolTraceOptions, field: string) =>
      expect(() => toolTrace(options)).toThrow(
        expect.objectContaining({ details: expect.objectContaining({ field }) }),
      );
    refused({ expected: [{ name: ' ' }] }, 'expected[0].name');
    refused({ expected: [{ name: 'a' }], forbidden: ['a'] }, 'expected[0].name');
    refused(
      { expected: [{ name: 'a', arguments: [] as unknown as Record<string, unknown> }] },
      'expected[0].arguments',
    );
    refused({ expected: [], maxCalls: 0.5 }, 'maxCalls');
    refused({ expected: [], weights: { calls: Number.NaN } }, 'weights.calls');
  });
});
