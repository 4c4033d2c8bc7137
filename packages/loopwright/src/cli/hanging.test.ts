import { LoopwrightError } from '@loopwright/protocol';
import picocolors from 'picocolors';
import { expect, it } from 'vitest';
import { describeError } from './console.js';
import { hanging } from './hanging.js';

const terminal = { isTTY: true, columns: 40 };
const text = 'raise maxTokens, or end answers by a stop text that is seldom written';

it('breaks at spaces within the terminal, and sets in what follows', () => {
  const lines = hanging('      → ', text, terminal).split('\n');
  expect(lines.length).toBeGreaterThan(1);
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(40);
  expect(lines.slice(1).every((line) => /^ {8}\S/.test(line))).toBe(true);
  expect(lines.map((line) => line.slice(8)).join(' ')).toBe(text);
});

it('does not count colours, and leaves long names whole', () => {
  const { dim } = picocolors.createColors(true);
  const path = `/${'folder/'.repeat(12)}`;
  const lines = hanging(dim('name  '), `somewhere in ${path}`, terminal).split('\n');
  expect(lines).toEqual([`${dim('name  ')}somewhere in`, `      ${path}`]);
});

it('keeps a number with its unit', () => {
  expect(hanging('', 'expected are 464 and at most about 4 k draws', { isTTY: true, columns: 37 })).toBe(
    'expected are 464 and at most about\n4 k draws',
  );
});

it('leaves a text whole where there is no terminal, or hardly room', () => {
  expect(hanging('  ', text, { columns: 40 })).toBe(`  ${text}`);
  expect(hanging('  ', text, { isTTY: true })).toBe(`  ${text}`);
  expect(hanging(' '.repeat(20), text, terminal)).toBe(`${' '.repeat(20)}${text}`);
});

it('sets in what an error expected, got and advises', () => {
  const details = { field: 'task', expected: text, got: 'another', remedy: text };
  const shown = describeError(new LoopwrightError({ code: 'invalid_argument', message: 'task', details }), {
    width: terminal,
  });
  expect(shown.split('\n')[0]).toBe('error invalid_argument: task');
  for (const line of shown.split('\n')) expect(line.length).toBeLessThanOrEqual(40);
  expect(shown).toMatch(/ {2}expected {2}raise maxTokens, or end\n {12}answers/);
});
