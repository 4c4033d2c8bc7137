/** A machine on which the native runtime does not load: loops get an error that says what else there is, and the server lives on. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { LoopwrightError, type WireError } from '@loopwright/protocol';
import { temporaryDirectory } from '@loopwright/testkit';
import { expect, test } from 'vitest';
import { expectRefusal } from './support/failure.js';

/** Node's own hook for resolving modules, in this process and the engine's: as if the runtime had no library here. */
const withoutRuntime = `data:text/javascript,${encodeURIComponent(`
  import { register } from 'node:module';
  const hooks = \`export const resolve = (name, context, next) => {
    if (name === 'onnxruntime-node') throw new Error('no library for this host');
    return next(name, context);
  };\`;
  register('data:text/javascript,' + encodeURIComponent(hooks));
`)}`;

const loop = `
  import { connect } from 'loopwright';
  const service = await connect();
  const create = () => service.createLoraTrainingClient({ baseModel: 'loopwright-tiny', rank: 2 });
  const errors = [await create().catch((error) => error), await create().catch((error) => error)];
  console.log(JSON.stringify({ errors, models: await service.listBaseModels() }));
  await service.close();
`;

test('a session is refused with unsupported_host and its remedy, each time one is asked for', async () => {
  await using home = await temporaryDirectory();
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', loop], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    env: {
      PATH: process.env.PATH ?? '',
      LOOPWRIGHT_HOME: join(home.path, 'home'),
      NODE_OPTIONS: `--import "${withoutRuntime}"`,
    },
  });
  const { errors, models } = JSON.parse(stdout) as { errors: WireError[]; models: string[] }; // true: the loop prints it
  expect(errors).toHaveLength(2);
  for (const error of errors) {
    expectRefusal(LoopwrightError.fromJSON(error), {
      code: 'unsupported_host',
      field: 'host',
      expected: /glibc/,
      got: process.platform,
      remedy: /LOOPWRIGHT_URL/,
    });
  }
  expect(models).toEqual(['loopwright-tiny']);
});
