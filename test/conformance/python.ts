/** Published Python SDKs: an environment for each in `tmp`, and running them. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface PythonOptions {
  /** For the line that says why nothing was run, such as `the Tinker wire`. */
  readonly of: string;
  /** Folder of the environment, in `tmp`. */
  readonly environment: string;
  /** Arguments of each `pip install`, in order. */
  readonly installs: readonly (readonly string[])[];
}

/** The Python of an environment, which is made anew when it was not finished. Without one the process ends with 3, and a plain line. */
export function pythonWith({ of, environment, installs }: PythonOptions): string {
  const venv = fileURLToPath(new URL(`../../tmp/${environment}`, import.meta.url));
  const python = join(venv, 'bin', 'python');
  const system = process.env.PYTHON ?? 'python3';
  if (spawnSync(system, ['-c', 'import venv, ensurepip']).status !== 0) {
    giveUp(`conformance of ${of}: not run, since there is no Python with venv (${system})`);
  }
  const marker = join(venv, 'made');
  if (existsSync(marker)) return python;
  const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
  const isMade =
    succeeds(system, ['-m', 'venv', '--clear', venv]) &&
    installs.every((what) => succeeds(python, [...install, ...what]));
  if (!isMade) giveUp(`conformance of ${of}: not run, since its Python packages could not be installed`);
  writeFileSync(marker, '');
  return python;
}

function giveUp(why: string): never {
  console.log(why);
  return process.exit(3);
}

function succeeds(file: string, args: readonly string[]): boolean {
  return spawnSync(file, args, { stdio: 'inherit' }).status === 0;
}

export interface Script {
  readonly python: string;
  /** The script, then its arguments. */
  readonly args: readonly string[];
  /** Besides PATH. */
  readonly env: Readonly<Record<string, string>>;
}

/** Runs a script and returns its exit code with what it wrote, which is shown as it comes. */
export async function runScript({
  python,
  args,
  env,
}: Script): Promise<{ readonly code: number; readonly output: string }> {
  const child = spawn(python, args, {
    env: { PATH: process.env.PATH, PYTHONUNBUFFERED: '1', PYTHONDONTWRITEBYTECODE: '1', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    process.stdout.write(chunk);
  });
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', reject).once('close', (status) => resolve(status ?? 1));
  });
  return { code, output };
}
