#!/usr/bin/env node
// The command by its name. It is no build output, so that npm finds something to link in a checkout that was not built yet.
import { existsSync } from 'node:fs';

const main = new URL('../dist/cli/main.js', import.meta.url);
if (existsSync(main)) await import(main);
else {
  console.error('loopwright: this checkout is not built; run npm run build first');
  process.exitCode = 1;
}
