/**
 * `npm run conformance:tinker`: drives a server of its own, on a model of random weights, with the published Tinker SDK.
 *
 * Makes a Python environment in `tmp` the first time (about 350 MB from the package index); PYTHON names another Python than
 * `python3`. With CONFORMANCE_COOKBOOK=1 it installs torch and tinker-cookbook besides (about 5 GB), and runs the checks that need
 * them and the cookbook's recipes. Ends with 1 on every outcome that `decided.json` does not explain, and with 3 where there is no
 * Python or its packages can't be had.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startCommand } from '../../support/command.js';
import { type Decision, verdictOf } from '../sagemaker/verdict.js';
import { makeModel } from './make-model.js';

const isFull = process.env.CONFORMANCE_COOKBOOK === '1';
const here = fileURLToPath(new URL('.', import.meta.url));
const environment = isFull ? 'conformance-tinker-full-venv' : 'conformance-tinker-venv';
const venv = fileURLToPath(new URL(`../../../tmp/${environment}`, import.meta.url));
const python = join(venv, 'bin', 'python');
const key = 'tml-conformance-key';
const model = 'conformance';

const system = process.env.PYTHON ?? 'python3';
if (spawnSync(system, ['-c', 'import venv, ensurepip']).status !== 0) {
  console.log(`conformance of the Tinker wire: not run, since there is no Python with venv (${system})`);
  process.exit(3);
}
if (!makeEnvironment()) {
  console.log('conformance of the Tinker wire: not run, since its Python packages could not be installed');
  process.exit(3);
}
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
  process.exitCode = faults.length + recipes.length === 0 ? 0 : 1;
} finally {
  server.interrupt();
  await server.end;
  await rm(home, { recursive: true, force: true });
}

async function readDecisions(): Promise<Record<string, Decision>> {
  return JSON.parse(await readFile(join(here, 'decided.json'), 'utf8')) as Record<string, Decision>; // true: the file beside this one
}

/** Made anew when it was not finished. False where it can't be. */
function makeEnvironment(): boolean {
  const marker = join(venv, 'made');
  if (existsSync(marker)) return true;
  const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
  const isMade =
    succeeds(system, ['-m', 'venv', '--clear', venv]) &&
    succeeds(python, [...install, '-r', join(here, 'requirements.txt')]) &&
    (!isFull ||
      (succeeds(python, [...install, '-r', join(here, 'requirements-cookbook.txt')]) &&
        // It asks for a renderer package that the index may not hold; the recipes used here run without it.
        succeeds(python, [...install, '--no-deps', 'tinker-cookbook==0.6.1'])));
  if (isMade) writeFileSync(marker, '');
  return isMade;
}

function succeeds(file: string, args: readonly string[]): boolean {
  return spawnSync(file, args, { stdio: 'inherit' }).status === 0;
}

/** Runs a client and returns what it wrote, which is shown as it comes. */
async function run(script: string, args: readonly string[]): Promise<string> {
  const env = { PATH: process.env.PATH, HOME: home, PYTHONUNBUFFERED: '1', PYTHONDONTWRITEBYTECODE: '1' };
  const child = spawn(python, [join(here, script), ...args], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    process.stdout.write(chunk);
  });
  await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve));
  return output;
}
