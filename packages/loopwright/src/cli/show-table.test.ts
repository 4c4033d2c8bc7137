import { displayWidth } from '@loopwright/loops';
import { expect, test } from 'vitest';
import { fittedTable } from './show-table.js';
import { figureText } from './text.js';

const head = ['version', 'kind', 'saved', 'description'];
const rows = [
  ['math/12', 'sampler', '2026-12-04 22:18', 'after two hundred steps on sums of two numbers'],
  ['日本語/3', 'state', '2026-12-04 22:19', ''],
];

test('a table has each row in one line where there is room, or no terminal; wide characters take two columns', () => {
  for (const width of [{}, { isTTY: false, columns: 20 }, { isTTY: true, columns: 100 }])
    expect(fittedTable(head, rows, width)).toEqual([
      'version   kind     saved             description',
      'math/12   sampler  2026-12-04 22:18  after two hundred steps on sums of two numbers',
      '日本語/3  state    2026-12-04 22:19',
    ]);
});

test('on a narrow terminal what has no room goes on below, and no line is wider than it', () => {
  expect(fittedTable(head, rows, { isTTY: true, columns: 40 })).toEqual([
    'version   kind     saved',
    '  description',
    'math/12   sampler  2026-12-04 22:18',
    '  after two hundred steps on sums of two\n  numbers',
    '日本語/3  state    2026-12-04 22:19',
  ]);
  const lines = fittedTable(head, rows, { isTTY: true, columns: 30 }).flatMap((line) => line.split('\n'));
  expect(Math.max(...lines.map(displayWidth))).toBeLessThanOrEqual(30);
});

test('figures have four digits, and counts all of theirs', () => {
  expect([18.4361315000001, -0.14215426088561936, 123456, 0, 1.23456e-7].map(figureText)).toEqual([
    ...['18.44', '-0.1422', '123456', '0', '1.235e-7'],
  ]);
});
