/** `loopwright templates` from outside: what it says of a model, exit codes, references. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryDirectory, writeChatModel } from '@loopwright/testkit';
import { expect, test } from 'vitest';
import { runCommand } from './support/command.js';

test('a sound model passes; what could not be compared is listed with the reason', async () => {
  await using folder = await temporaryDirectory();
  const home = join(folder.path, 'home');
  const model = join(folder.path, 'qwen3');
  await writeChatModel(model, 'qwen3');
  const { code, stdout, stderr } = await runCommand(['templates', 'check', model], { home });
  expect(stderr).toBe('');
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /format {5}qwen3\n {2}calls {6}hermes\n {2}reasoning {2}by switch\n {2}turns end {2}<\|im_end\|>\n/,
  );
  expect(stdout).toContain('Not comparable\n');
  expect(stdout).toMatch(/\n\d+ chats: \d+ checks came out the same, 0 different; \d+ noted, \d+ not comparable\.\n/);
  const json = await runCommand(['templates', 'check', model, '--json'], { home });
  expect(json.events[0]).toMatchObject({ type: 'template', family: 'qwen3', tools: 'hermes', stops: ['<|im_end|>'] });
  expect(json.events.at(-1)).toMatchObject({ type: 'check-end', different: 0 });
  expect(json.events).toContainEqual(expect.objectContaining({ type: 'finding', status: 'not-comparable' }));
});

test('a fault ends with 1 and shows the first difference, escaped', async () => {
  await using folder = await temporaryDirectory();
  const home = join(folder.path, 'home');
  const model = join(folder.path, 'model');
  await writeChatModel(
    model,
    'chatml',
    '{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}',
  );
  const reference = join(folder.path, 'reference.json');
  const row = { case: 'mine', messages: [{ role: 'user', content: '\u001b[31m1' }], tools: null, kwargs: {} };
  const expected = '<|im_start|>user\n\u001b[31m2<|im_end|>';
  await writeFile(reference, JSON.stringify({ made_by: 'hand', cases: [{ ...row, expected }] }));
  const { code, stdout } = await runCommand(['templates', 'check', model, '--against', reference], { home });
  expect(code).toBe(1);
  expect(stdout).toContain('reference  1 chats by hand\n');
  expect(stdout).toContain('different  mine, reference-text: other text\n  at        byte 22\n');
  expect(stdout).toContain('  expected  <|im_start|>user\\n\\x1b[31m2<|im_end|>\n');
});

test('what is wrong with a model, a reference or the command line is said', async () => {
  await using folder = await temporaryDirectory();
  const home = join(folder.path, 'home');
  const model = join(folder.path, 'model');
  await writeChatModel(model, 'chatml');
  const run = (...args: readonly string[]) => runCommand(['templates', ...args], { home });
  expect(await run('check', 'no/such')).toMatchObject({ code: 1, stderr: expect.stringContaining('unknown_model') });
  expect(await run('check', folder.path)).toMatchObject({ code: 1, stderr: expect.stringContaining('tokenizer.json') });
  const missing = await run('check', model, '--against', join(folder.path, 'none.json'));
  expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining('error invalid_argument: against') });
  expect(await run('check')).toMatchObject({ code: 2 });
  expect((await run('--help')).stdout).toContain('loopwright templates reference MODEL | python - > reference.json');
});

test('a Python program for a reference is printed, and nothing else', async () => {
  await using folder = await temporaryDirectory();
  const model = join(folder.path, 'model');
  await writeChatModel(model, 'llama3');
  const { code, stdout, stderr } = await runCommand(['templates', 'reference', model], { home: folder.path });
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^import datetime, json, os, sys\nimport tokenizers, transformers\n/);
  expect(stdout).toContain(`model = ${JSON.stringify(model)}\n`);
});
