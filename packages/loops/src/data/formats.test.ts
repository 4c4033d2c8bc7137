import { expect, test } from 'vitest';
import type { FieldColumns } from './columns.js';
import { datasetOf } from './dataset.js';
import { textSource } from './jsonl-source.js';
import type { DataFormat } from './typed-rows.js';

const withFields = (fields: FieldColumns, ...rows: readonly unknown[]) =>
  datasetOf([textSource(rows.map((row) => JSON.stringify(row)).join('\n'), { file: 't.jsonl' })], {
    onReport: () => undefined,
    fields,
  });
const of = (...rows: readonly unknown[]) => withFields({}, ...rows);

const user = { role: 'user', content: 'Hi' };
const said = { role: 'assistant', content: 'Hello' };
const other = { role: 'assistant', content: 'Go away' };

test.each([
  ['chat', { messages: [user, said] }],
  ['prompt_completion', { prompt: 'a', completion: 'b' }],
  ['preference', { prompt: 'a', chosen: 'b', rejected: 'c' }],
  ['preference', { chosen: [user, said], rejected: [user, other] }],
  ['kto', { prompt: 'a', completion: 'b', label: false }],
  ['rl_prompt', { question: '1+1', answer: '2' }],
  ['rl_prompt', { prompt: [user], reward_model: { style: 'rule', ground_truth: '2' } }],
  ['rl_prompt', { prompt: [user], extra_info: { answer: 2 } }],
] as const)('the format %s is seen in %o, and its rows are read', async (format, row) => {
  const data = of(row, row);
  expect(await data.format()).toMatchObject({ format, rowsChecked: 2, errorCount: 0 });
  let count = 0;
  for await (const typed of data.as(format)) {
    expect(typed.row).toEqual(row);
    count += 1;
  }
  expect(count).toBe(2);
});

test('rows of two formats are refused, with how many of each and where', async () => {
  await expect(of({ question: 'a', answer: 'b' }, { messages: [user] }).format()).rejects.toMatchObject({
    code: 'data_invalid',
    details: { got: '1 of rl_prompt (first: line 1), 1 of chat (first: line 2)' },
  });
});

test('a row that could be two formats, one of none, and a file without rows are refused', async () => {
  await expect(of({ messages: [user], prompt: 'a', completion: 'b' }).format()).rejects.toThrow(
    /line 1, which could be chat or prompt_completion/,
  );
  await expect(of({ text: 'a' }).format()).rejects.toThrow(/line 1 with none of them/);
  await expect(of().format()).rejects.toMatchObject({ code: 'data_invalid', details: { got: 'none' } });
});

const bad: readonly (readonly [DataFormat, unknown, string, string])[] = [
  ['rl_prompt', { question: 'q', answer: null }, 'answer', 'null'],
  ['rl_prompt', { question: 'q', answer: ' ' }, 'answer', 'a text of 1 characters'],
  ['rl_prompt', { prompt: 'q', reward_model: { ground_truth: null } }, 'reward_model.ground_truth', 'null'],
  ['rl_prompt', { answer: '1' }, 'question', 'nothing'],
  ['prompt_completion', { prompt: 'p', completion: null }, 'completion', 'null'],
  ['preference', { prompt: 1, chosen: 'a', rejected: 'b' }, 'prompt', 'a number'],
  ['preference', { chosen: 'a' }, 'rejected', 'nothing'],
  ['preference', { prompt: 'p', chosen: 'a', rejected: 'a' }, 'rejected', 'the same'],
  ['preference', { chosen: [user, said], rejected: [user, said] }, 'rejected', 'the same'],
  ['preference', { prompt: 'p', chosen: 'a', rejected: [said] }, 'rejected', 'a list of 1'],
  ['preference', { chosen: [user, said], rejected: [user] }, 'rejected[1]', 'nothing'],
  ['preference', { chosen: [said], rejected: [other] }, 'chosen', 'answers of which the first messages differ'],
  ['preference', { chosen: [user, said, user], rejected: [user, user] }, 'rejected[1].role', 'user'],
  ['kto', { prompt: 'a', completion: 'b', label: 1 }, 'label', 'a number'],
  ['chat', { messages: [] }, 'messages', 'a list of 0'],
  ['chat', { messages: [user, { role: 'bot', content: 'x' }] }, 'messages[1].role', 'another text'],
  ['chat', { messages: [{ role: 'assistant', content: null }] }, 'messages[0].content', 'null'],
  [
    'chat',
    { messages: [{ role: 'user', content: [{ type: 'image' }] }] },
    'messages[0].content[0]',
    'an object of another form',
  ],
  ['chat', { messages: [user], tools: {} }, 'tools', 'an object'],
];

test.each(bad)('read as %s, %o is a row error at its field', async (format, row, field, got) => {
  const reading = of(row).as(format).read({ onRowError: 'skip' });
  for await (const _ of reading) expect.unreachable('the row was read');
  expect(reading.report()).toMatchObject({ errorCount: 1, errors: [{ at: { line: 1 }, field, got }] });
});

test('calls of tools stand for content, and parts of text are content', async () => {
  const calls = { role: 'assistant', content: null, tool_calls: [{ function: { name: 'f', arguments: '{}' } }] };
  const parts = { role: 'user', content: [{ type: 'text', text: 'x' }] };
  const tools = [{ type: 'function' }];
  for await (const row of of({ messages: [parts, calls], tools }).as('chat')) {
    expect(row.messages).toEqual([parts, calls]);
    expect(row.tools).toEqual(tools);
  }
});

test('an answer that is a number is its text', async () => {
  for await (const { answer } of of({ question: 'q', answer: 0 }).as('rl_prompt')) expect(answer).toBe('0');
});

const question = { role: 'user', content: 'And now?' };
test.each([
  [
    'what both conversations begin with',
    { chosen: [user, said, question, said], rejected: [user, said, question, other] },
  ],
  [
    'that, though a text tells it too',
    { prompt: 'Hi', chosen: [user, said, question, said], rejected: [user, said, question, other] },
  ],
  [
    'messages that both repeat',
    { prompt: [user, said, question], chosen: [user, said, question, said], rejected: [user, said, question, other] },
  ],
  ['messages before answers alone', { prompt: [user, said, question], chosen: [said], rejected: [other] }],
])('the prompt of a preference is %s', async (_, row) => {
  let count = 0;
  for await (const { prompt, chosen, rejected } of of(row).as('preference')) {
    expect({ prompt, chosen, rejected }).toEqual({ prompt: [user, said, question], chosen: [said], rejected: [other] });
    count += 1;
  }
  expect(count).toBe(1);
});

test('a text before answers that are messages is a prompt as it stands, and texts without one keep it', async () => {
  const rows = [
    { prompt: 'p', chosen: [said, question, said], rejected: [said, question, other] },
    { chosen: 'Q: p A: a', rejected: 'Q: p A: b' },
  ];
  const found: unknown[] = [];
  for await (const { row, ...typed } of of(...rows).as('preference')) found.push(typed);
  expect(found).toMatchObject(rows);
  expect(found[1]).not.toHaveProperty('prompt');
});

test('columns of other names, members of columns too, are read as the fields that they are said to be', async () => {
  const row = { id: 7, problem: '1+1', solution: { final: 2 }, answer: 'wrong', question: 'wrong' };
  const data = withFields({ prompt: 'problem', answer: 'solution.final' }, row);
  expect(await data.format()).toMatchObject({ format: 'rl_prompt', fields: ['problem', 'solution.final'] });
  for await (const typed of data.as('rl_prompt')) {
    expect(typed).toMatchObject({ prompt: '1+1', answer: '2', row });
    for await (const plain of of(row)) expect(typed.id).toBe(plain.id);
  }
  const pairs = withFields({ chosen: 'good', rejected: 'bad' }, { good: 'a', bad: 'b', prompt: 'p' });
  expect(await pairs.format()).toMatchObject({ format: 'preference', fields: ['good', 'bad'] });
});

test('a mapped column that is missing is a row error by its name, whatever else is there', async () => {
  const reading = withFields({ answer: 'solution' }, { prompt: 'p', answer: '2' })
    .as('rl_prompt')
    .read({ onRowError: 'skip' });
  for await (const _ of reading) expect.unreachable('the row was read');
  expect(reading.report()).toMatchObject({ errors: [{ field: 'solution', got: 'nothing' }] });
});

test('of two formats, that is meant whose fields were named', async () => {
  const row = { messages: [user, said], problem: 'p', solution: '2' };
  expect(await withFields({ prompt: 'problem', answer: 'solution' }, row).format()).toMatchObject({
    format: 'rl_prompt',
  });
  expect(await withFields({ messages: 'messages' }, { ...row, prompt: 'p', completion: 'c' }).format()).toMatchObject({
    format: 'chat',
  });
});

test('fields that no format has, columns that are no names, and unknown formats are refused at once', () => {
  // What a program in JavaScript may do.
  const bad = (fields: unknown) => () => withFields(fields as FieldColumns, {});
  expect(bad({ promt: 'problem' })).toThrow(/fields\.promt: expected one of messages/);
  expect(bad({ prompt: 1 })).toThrow(/fields\.prompt: expected the name of a column, got a number/);
  expect(bad('prompt')).toThrow(/fields: expected/);
  expect(() => of({}).as('csv' as DataFormat)).toThrow(/format: expected one of chat, .*got csv/);
});
