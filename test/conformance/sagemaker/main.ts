/**
 * `npm run conformance:sagemaker`: drives a server of its own with the published Python SDK and boto3, signed requests included.
 *
 * Makes a Python environment in `tmp/conformance-venv` the first time (about 280 MB from the package index); PYTHON names another
 * Python than `python3`. Ends with 1 on every outcome that `decided.json` does not explain, and with 3 where there is no
 * Python or its packages can't be had.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startCommand } from '../../support/command.js';
import { pythonWith, runScript } from '../python.js';
import { type Decision, verdictOf } from '../verdict.js';

const here = fileURLToPath(new URL('.', import.meta.url));
const key = 'conformance-key';
/** Ids that the bundled model has, all different. */
const promptIds = '40,41,42,43,44,45,46';

const requirements = (name: string): string[] => ['-r', join(here, name)];
const python = pythonWith({
  of: 'the SageMaker wire',
  environment: 'conformance-venv',
  installs: [['--no-deps', ...requirements('requirements.txt')], requirements('requirements-tokenizer.txt')],
});
const home = await mkdtemp(join(tmpdir(), 'loopwright-conformance-'));
const server = startCommand(['serve', '--port', '0', '--api-key', key, '--data', join(home, 'data')], { home });
try {
  const [, url] = /listens on (\S+)/.exec(await server.output(/loops +\S/)) ?? [];
  if (url === undefined) throw new Error('the server named no address');
  const { output } = await runScript({
    python,
    args: [
      join(here, 'run.py'),
      '--endpoint',
      url,
      '--api-key',
      key,
      '--prompt-ids',
      promptIds,
      '--tokenizer',
      '--check-auth',
    ],
    env: { HOME: home, HF_TOKEN: key }, // the tokenizer's library sends no signature, but this as a bearer
  });
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
