import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { temporaryDirectory } from '@loopwright/testkit';
import { expect, it } from 'vitest';

/** Compiled, since the child runs plain Node: it loads the runtime and runs a small program. */
const compiled = new URL('../../../dist/local/probe.js', import.meta.url);

it('loads the runtime with its usage reports switched off', async () => {
  await using directory = await temporaryDirectory();
  const { ORT_DISABLE_TELEMETRY: _, ...environment } = process.env;
  // The reporter keeps a log and a database under these two folders as soon as it is on.
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      `const { probeRuntime } = await import(${JSON.stringify(compiled.href)}); console.log((await probeRuntime({ threads: 1, size: 64 })).threads);`,
    ],
    {
      env: { ...environment, TMPDIR: directory.path, HOME: directory.path, XDG_CACHE_HOME: directory.path },
      cwd: fileURLToPath(new URL('.', compiled)),
    },
  );
  expect(stdout.trim()).toBe('1');
  expect(await readdir(directory.path)).toEqual([]);
});
