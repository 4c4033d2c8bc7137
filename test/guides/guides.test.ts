/** The programs of the guides, run as they are printed there. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { temporaryDirectory } from '@loopwright/testkit';
import type { CustomDatum } from 'loopwright';
import { expect, test } from 'vitest';
import { runCommand } from '../support/command.js';
import { judged, person, query, remote, search } from './built-in-graders.js';
import { drawTo } from './own-gradient.js';

const run = promisify(execFile);
const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');
const guide = read('../../docs/guides/custom-loss.md');
const renderers = read('../../docs/guides/renderers.md');
const block = (language: string, text: string): string => `\`\`\`${language}\n${text}\`\`\``;

/** Runs a program of this folder as a reader would. */
async function outputOf(name: string): Promise<string> {
  await using home = await temporaryDirectory();
  const env = { PATH: process.env.PATH ?? '', HOME: home.path, LOOPWRIGHT_HOME: home.path };
  const program = fileURLToPath(new URL(name, import.meta.url));
  const { stdout } = await run(process.execPath, ['--import', 'tsx', program], { env });
  return stdout;
}

test('the guide to renderers shows a program that prints what the guide says', async () => {
  expect(renderers).toContain(block('ts', read('renderers.ts')));
  const [, told] = /```\n(ok: [^`]*)```/.exec(renderers)!;
  // The answer is the bundled model's, right or not.
  const blank = (text: string): string => text.replaceAll(/^(ok: )?\d+(<\|im_end\|>)?$/gm, '$1…$2');
  expect(blank(await outputOf('renderers.ts'))).toBe(blank(told!));
});

test('the guide to sandboxes shows a program that prints what the guide says', async () => {
  const sandbox = read('../../docs/guides/sandbox.md');
  expect(sandbox).toContain(block('ts', read('sandbox.ts')));
  expect(sandbox).toContain(block('', await outputOf('sandbox.ts')));
});

test('the guide to data shows a program that prints what the guide says', async () => {
  const data = read('../../docs/guides/data.md');
  expect(data).toContain(block('ts', read('data.ts')));
  expect(data).toContain(block('', await outputOf('data.ts')));
});

test('the guide to runs shows a program that prints what the guide says, and commands that show what it kept', async () => {
  const runs = read('../../docs/guides/runs.md');
  expect(runs).toContain(block('ts', read('runs.ts')));
  await using folder = await temporaryDirectory();
  const env = { PATH: process.env.PATH ?? '', HOME: folder.path, LOOPWRIGHT_HOME: folder.path };
  const program = fileURLToPath(new URL('runs.ts', import.meta.url));
  const loader = import.meta.resolve('tsx');
  for (let time = 0; time < 2; time++) {
    const { stdout } = await run(process.execPath, ['--import', loader, program], { env, cwd: folder.path });
    expect(runs).toContain(block('', stdout));
  }
  const commands = [...runs.matchAll(/^npx loopwright ((?:runs|report)\b[^#\n]*)/gm)].map(([, words]) => words!.trim());
  expect(commands).toHaveLength(5);
  for (const words of commands) {
    const { code, stdout } = await runCommand(words.split(/ +/), { home: folder.path, cwd: folder.path });
    expect([words, code, stdout]).toEqual([words, 0, expect.stringMatching(/sums|runs\.ts/)]);
  }
  const events = await readdir(join(folder.path, 'runs', 'sums', 'tensorboard'));
  expect(events).toEqual([expect.stringContaining('tfevents')]);
});

test('the guide to the guard shows a program that prints what the guide says', async () => {
  const guard = read('../../docs/guides/guard.md');
  expect(guard).toContain(block('ts', read('guard.ts')));
  expect(guard).toContain(block('', await outputOf('guard.ts')));
});

test('the guide to losses of your own shows a program that prints what the guide says', async () => {
  expect(guide).toContain(block('ts', read('custom-loss.ts')));
  const stdout = await outputOf('custom-loss.ts');
  // Last digits are the machine's: the guide says one machine's.
  const numbers = (text: string): number[] => [...text.matchAll(/-?\d+\.\d+/g)].map(Number);
  const [, told] = /```\n(step 1:[^`]*)```/.exec(guide)!;
  expect(stdout.replaceAll(/-?\d+\.\d+/g, 'x')).toBe(told!.replaceAll(/-?\d+\.\d+/g, 'x'));
  numbers(told!).forEach((number, i) => {
    expect(numbers(stdout)[i]).toBeCloseTo(number, 1);
  });
});

test('the gradient that the guide gives by hand is that of its loss', () => {
  expect(guide).toContain(block('ts', read('own-gradient.ts')));
  const loss = drawTo(-1);
  const data: CustomDatum[] = []; // the loss looks at no datum
  const at = [[-0.5, -2], [-1.25]];
  const { gradients } = loss(at, data);
  const h = 1e-6;
  at.forEach((row, i) => {
    row.forEach((lp, j) => {
      const moved = (to: number) =>
        loss(
          at.map((r, a) => r.map((l, b) => (a === i && b === j ? to : l))),
          data,
        ).loss;
      expect(Number(gradients[i]![j])).toBeCloseTo((moved(lp + h) - moved(lp - h)) / (2 * h), 6);
    });
  });
});

const graders = read('../../docs/guides/graders.md');

test('the guide to graders shows a grader that prints what the guide says', async () => {
  expect(graders).toContain(block('ts', read('grader.ts')));
  const program = fileURLToPath(new URL('grader.ts', import.meta.url));
  const { stdout } = await run(process.execPath, ['--import', 'tsx', program]);
  expect(graders).toContain(`\`\`\`\n${stdout}\`\`\``);
});

test('the built-in graders of the guide do what it says', async () => {
  expect(graders).toContain(block('ts', read('built-in-graders.ts')));
  const answered = (text: string, answer: string) => ({
    problem: { id: 'p', question: '?', answer },
    text,
    stopReason: 'stop' as const,
  });
  const gold = '{"name": "Ada", "address": {"city": "London"}}';
  expect(await person(answered('{"name": "Ada", "city": "London"}', gold))).toMatchObject({ reward: 0.7 });
  const count = 'SELECT sum(count) FROM sold';
  expect(await query(answered('SELECT total(count) FROM sold', count))).toMatchObject({ status: 'ok', reward: 1 });
  expect(await query(answered('SELECT 4', count))).toMatchObject({ status: 'ok', reward: 0 });
  const call = (name: string, q: string) => ({ id: name, name, arguments: { q, page: 1 } });
  expect(search([call('search', 'Oslo')])).toMatchObject({ reward: 1 });
  expect(search([call('search', 'Oslo'), call('delete', 'Oslo')])).toMatchObject({ reward: -0.5 });

  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer); // true: no encoding is set
    const text = Buffer.concat(chunks).toString();
    response.setHeader('content-type', 'application/json');
    if (request.url === '/v1/chat/completions') {
      const score = text.includes('Thank you') ? 9 : 1;
      response.end(JSON.stringify({ choices: [{ message: { content: `{"score": ${score}}` } }] }));
    } else {
      const [{ id }] = JSON.parse(text) as [{ id: string }]; // true: one answer is graded
      const metrics_list = [{ name: 'accuracy', value: 0.5, type: 'Metric' }];
      response.end(JSON.stringify([{ id, aggregate_reward_score: 2, metrics_list }]));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // true: it listens on a port
    const judge = await judged(`${url}/v1`);
    expect(await judge(answered('Thank you, no.', ''))).toMatchObject({ status: 'ok', reward: 0.9 });
    expect(await remote(`${url}/reward`)(answered('x', 'x'))).toMatchObject({
      reward: 2,
      components: [{ name: 'http' }, { name: 'http.accuracy', score: 0.5 }],
    });
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});
