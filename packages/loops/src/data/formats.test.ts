import { expect, test } from 'vitest';
import { datasetOf } from './dataset.js';
import { textSource } from './jsonl-source.js';
import type { DataFormat } from './typed-rows.js';

const of = (...rows: readonly unknown[]) =>
  datasetOf([textSource(rows.map((row) => JSON.stringify(row)).join('\n'), { file: 't.jsonl' })], {
    onReport: () => undefined,
  });

const user = { role: 'user', content: 'Hi' };
const said = { role: 'assistant', content: 'Hello' };

test.each([
  ['chat', { messages: [user, said] }],
  ['prompt_completion', { prompt: 'a', completion: 'b' }],
  ['preference', { prompt: 'a', chosen: 'b', rejected: 'c' }],
  ['preference', { chosen: [user, said], rejected: [user, said] }],
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
