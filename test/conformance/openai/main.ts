/**
 * `npm run conformance:openai`, after its Node part: drives a server of its own with the published OpenAI client for Python.
 *
 * Makes a Python environment in `tmp/conformance-openai-venv` the first time (about 40 MB from the package index); PYTHON names another
 * Python than `python3`. Ends with 1 when a check failed, and with 3 where there is no Python or its packages can't be had.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startScriptedServer } from './scripted-server.js';

const here = fileURLToPath(new URL('.', import.meta.url));
const venv = fileURLToPath(new URL('../../../tmp/conformance-openai-venv', import.meta.url));
const python = join(venv, 'bin', 'python');
const apiKey = 'conformance-key';

const system = process.env.PYTHON ?? 'python3';
if (spawnSync(system, ['-c', 'import venv, ensurepip']).status !== 0) {
  console.log(`conformance of the OpenAI wire: Python part not run, since there is no Python with venv (${system})`);
  process.exit(3);
}
if (!makeEnvironment()) {
  console.log('conformance of the OpenAI wire: Python part not run, since its packages could not be installed');
  process.exit(3);
}
await using server = await startScriptedServer({ apiKey, parrot: true });
const child = spawn(python, [join(here, 'run.py'), server.url, apiKey], { stdio: 'inherit' });
process.exitCode = await new Promise<number>((resolve, reject) => {
  child.once('error', reject).once('close', (code) => resolve(code ?? 1));
});

/** Made anew when it was not finished. False where it can't be. */
function makeEnvironment(): boolean {
  const marker = join(venv, 'made');
  if (existsSync(marker)) return true;
  const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
  const isMade =
    succeeds(system, ['-m', 'venv', '--clear', venv]) &&
    succeeds(python, [...install, '-r', join(here, 'requirements.txt')]);
  if (isMade) writeFileSync(marker, '');
  return isMade;
}

function succeeds(file: string, args: readonly string[]): boolean {
  return spawnSync(file, args, { stdio: 'inherit' }).status === 0;
}
