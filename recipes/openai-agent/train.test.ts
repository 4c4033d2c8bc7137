import { execFile } from 'node:child_process';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { temporaryDirectory } from '@loopwright/testkit';
import { tinyModel } from '@loopwright/tiny';
import { expect, test } from 'vitest';

const run = promisify(execFile);
const recipe = fileURLToPath(new URL('train.ts', import.meta.url));
/** The bundled model knows no tools: one line tells its template of them, so that the loop has something to go through. */
const template =
  '{% if tools %}{{ tools | length }} <tool_call>{% endif %}{% for m in messages %}{{ m.content }}={% endfor %}{# "arguments" #}';

test('a step of the loop: turns recorded over HTTP, trained, an adapter saved', { timeout: 240_000 }, async () => {
  await using home = await temporaryDirectory();
  const model = join(home.path, 'model');
  await cp(tinyModel.directory, model, { recursive: true });
  const path = join(model, 'tokenizer_config.json');
  const config: object = JSON.parse(await readFile(path, 'utf8'));
  await writeFile(path, JSON.stringify({ ...config, chat_template: template }));
  const env = { PATH: process.env.PATH ?? '', HOME: home.path, LOOPWRIGHT_HOME: home.path };
  const args = ['--import', 'tsx', recipe, '--model', model, '--steps', '1'];
  const { stdout } = await run(process.execPath, args, { env });
  expect(stdout).toMatch(/^step 1\/1 {2}reward \d\.\d{3} {2}turns 1\.\d{3} {2}datums 3[2-9]\nadapter arn:/);
});
