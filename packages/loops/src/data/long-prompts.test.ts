import { expect, test } from 'vitest';
import { datasetOf } from './dataset.js';
import { textSource } from './jsonl-source.js';
import { findLongPrompts } from './long-prompts.js';

test('prompts above the limit are listed with their places and lengths, in whatever format', async () => {
  const user = { role: 'user', content: 'a b c' };
  const rows = [
    { question: 'a b', answer: 1 },
    { question: 'a b c', answer: 1 },
    { messages: [user, { role: 'assistant', content: 'x' }, user] },
    { text: 'a b c d' },
  ];
  const data = datasetOf([textSource(rows.map((row) => JSON.stringify(row)).join('\n'), { file: 't' })]);
  const countTokens = (prompt: unknown) =>
    (typeof prompt === 'string' ? prompt : JSON.stringify(prompt)).split(' ').length;
  const found = await findLongPrompts(data, { maxTokens: 2, countTokens });
  expect(found).toMatchObject({
    rows: 4,
    withoutPrompt: 1,
    longCount: 2,
    long: [
      { at: { file: 't', line: 2 }, tokens: 3 },
      { at: { file: 't', line: 3 }, tokens: 3 },
    ],
  });
  expect(await findLongPrompts(data, { maxTokens: 3, countTokens })).toMatchObject({ longCount: 0, long: [] });
  await expect(findLongPrompts(data, { maxTokens: 0, countTokens })).rejects.toMatchObject({
    code: 'invalid_argument',
  });
});
