/**
 * `npm run conformance:tinker`: drives a server of its own, on a model of random weights, with the published Tinker SDK.
 *
 * Makes a Python environment in `tmp` the first time (about 350 MB from the package index); PYTHON names another Python than
 * `python3`. With CONFORMANCE_COOKBOOK=1 it installs torch and tinker-cookbook besides (about 5 GB), and runs the checks that need
 * them and the cookbook's recipes. Ends with 1 on every outcome that `decided.json` does not explain, and with 3 where there is no
 * Python or its packages can't be had.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { commandEntry, startCommand } from '../../support/command.js';
import { pythonWith, runScript } from '../python.js';
import { type Decision, verdictOf } from '../verdict.js';
import { makeModel } from './make-model.js';

const isFull = process.env.CONFORMANCE_COOKBOOK === '1';
const here = fileURLToPath(new URL('.', import.meta.url));
const key = 'tml-conformance-key';
const model = 'conformance';

const requirements = (name: string): string[] => ['-r', join(here, name)];
const python = pythonWith({
  of: 'the Tinker wire',
  environment: isFull ? 'conformance-tinker-full-venv' : 'conformance-tinker-venv',
  installs: [
    requirements('requirements.txt'),
    // The cookbook asks for a renderer package that the index may not hold; the recipes used here run without it.
    ...(isFull ? [requirements('requirements-cookbook.txt'), ['--no-deps', 'tinker-cookbook==0.6.1']] : []),
  ],
});
const home = await mkdtemp(join(tmpdir(), 'loopwright-conformance-'));
const directory = await makeModel(join(home, 'model'));
const data = ['--data', join(home, 'data'), '--model', `${model}=${directory}`];
const server = startCommand(['serve', '--port', '0', '--api-key', key, ...data], { home });
try {
  const [, url] = /listens on (\S+)/.exec(await server.output(/loops +\S/)) ?? [];
  if (url === undefined) throw new Error('the server named no address');
  const to = ['--base-url', url, '--api-key', key, '--base-model', model];
  const output = await run('run.py', to);
  const decisions = isFull ? {} : await readDecisions();
  const { ok, explained, faults } = verdictOf(output, decisions);
  for (const name of explained) console.log(`${decisions[name]!.kind}: ${name}: ${decisions[name]!.reason}`);
  for (const fault of faults) console.log(`unexplained: ${fault}`);
  console.log(`${ok} passed, ${faults.length} failed (${explained.length} explained)`);
  const recipes = isFull ? verdictOf(await run('cookbook_smoke.py', [...to, '--tokenizer', directory]), {}).faults : [];
  const deaths = verdictOf(await runRestart(), {}).faults;
  process.exitCode = faults.length + recipes.length + deaths.length === 0 ? 0 : 1;
} finally {
  server.interrupt();
  await server.end;
  await rm(home, { recursive: true, force: true });
}

async function readDecisions(): Promise<Record<string, Decision>> {
  return JSON.parse(await readFile(join(here, 'decided.json'), 'utf8')) as Record<string, Decision>; // true: the file beside this one
}

/** With a server that the script starts, kills and starts again. */
async function runRestart(): Promise<string> {
  const kept = ['--data', join(home, 'mortal'), '--model', `${model}=${directory}`];
  const command = [process.execPath, commandEntry, 'serve', '--port', 'PORT', '--api-key', key, ...kept];
  return run('restart.py', ['--api-key', key, '--base-model', model, '--', ...command]);
}

/** Returns what a client wrote. */
async function run(script: string, args: readonly string[]): Promise<string> {
  return (await runScript({ python, args: [join(here, script), ...args], env: { HOME: home } })).output;
}
