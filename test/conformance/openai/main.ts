/**
 * `npm run conformance:openai`, after its Node part: drives a server of its own with the published OpenAI client for Python.
 *
 * Makes a Python environment in `tmp/conformance-openai-venv` the first time (about 40 MB from the package index); PYTHON names another
 * Python than `python3`. Ends with 1 when a check failed, and with 3 where there is no Python or its packages can't be had.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pythonWith, runScript } from '../python.js';
import { startScriptedServer } from './scripted-server.js';

const here = fileURLToPath(new URL('.', import.meta.url));
const apiKey = 'conformance-key';

const python = pythonWith({
  of: 'the OpenAI wire, its Python part',
  environment: 'conformance-openai-venv',
  installs: [['-r', join(here, 'requirements.txt')]],
});
await using server = await startScriptedServer({ apiKey, parrot: true });
const { code } = await runScript({ python, args: [join(here, 'run.py'), server.url, apiKey], env: {} });
process.exitCode = code;
