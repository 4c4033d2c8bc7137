/**
 * `npm run conformance:sagemaker`: drives a server of its own with the published Python SDK and boto3, signed requests included.
 *
 * Makes a Python environment in `tmp/conformance-venv` the first time (about 280 MB from the package index); PYTHON names another
 * Python than `python3`. Ends with 1 on every outcome that `decided.json` does not explain, and with 3 where there is no
 * Python or its packages can't be had.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startCommand } from '../../support/command.js';
import { type Decision, verdictOf } from './verdict.js';

const here = fileURLToPath(new URL('.', import.meta.url));
const venv = fileURLToPath(new URL('../../../tmp/conformance-venv', import.meta.url));
const python = join(venv, 'bin', 'python');
const key = 'conformance-key';
/** Ids that the bundled model has, all different. */
const promptIds = '40,41,42,43,44,45,46';

const system = process.env.PYTHON ?? 'python3';
if (spawnSync(system, ['-c', 'import venv, ensurepip']).status !== 0) {
  console.log(`conformance of the SageMaker wire: not run, since there is no Python with venv (${system})`);
  process.exit(3);
}
if (!makeEnvironment()) {
  console.log('conformance of the SageMaker wire: not run, since its Python packages could not be installed');
  process.exit(3);
}
const home = await mkdtemp(join(tmpdir(), 'loopwright-conformance-'));
const server = startCommand(['serve', '--port', '0', '--api-key', key, '--data', join(home, 'data')], { home });
try {
  const [, url] = /listens on (\S+)/.exec(await server.output(/loops +\S/)) ?? [];
  if (url === undefined) throw new Error('the server named no address');
  const output = await converse(url);
  const decisions = JSON.parse(await readFile(join(here, 'decided.json'), 'utf8')) as Record<string, Decision>; // true: the file beside this one
  const { ok, explained, faults } = verdictOf(output, decisions);
  for (const name of explained) console.log(`${decisions[name]!.kind}: ${name}: ${decisions[name]!.reason}`);
  for (const fault of faults) console.log(`unexplained: ${fault}`);
  console.log(`${ok} passed, ${faults.length} failed (${explained.length} explained)`);
  process.exitCode = faults.length === 0 ? 0 : 1;
} finally {
  server.interrupt();
  await server.end;
  await rm(home, { recursive: true, force: true });
}

/** Made anew when it was not finished. False where it can't be. */
function makeEnvironment(): boolean {
  const marker = join(venv, 'made');
  if (existsSync(marker)) return true;
  const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
  const isMade =
    succeeds(system, ['-m', 'venv', '--clear', venv]) &&
    succeeds(python, [...install, '--no-deps', '-r', join(here, 'requirements.txt')]) &&
    succeeds(python, [...install, '-r', join(here, 'requirements-tokenizer.txt')]);
  if (isMade) writeFileSync(marker, '');
  return isMade;
}

function succeeds(file: string, args: readonly string[]): boolean {
  return spawnSync(file, args, { stdio: 'inherit' }).status === 0;
}

/** Runs the client and returns what it wrote, which is shown as it comes. */
async function converse(url: string): Promise<string> {
  const args = ['--endpoint', url, '--api-key', key, '--prompt-ids', promptIds, '--tokenizer', '--check-auth'];
  // The tokenizer's library sends no signature, but this as a bearer.
  const env = { PATH: process.env.PATH, HOME: home, HF_TOKEN: key, PYTHONUNBUFFERED: '1' };
  const child = spawn(python, [join(here, 'run.py'), ...args], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    process.stdout.write(chunk);
  });
  await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve));
  return output;
}
