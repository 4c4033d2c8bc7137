/** One temporary directory for a whole test run, removed at its end: what a test or a killed process leaves behind goes with it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Runs once, before the workers start: they inherit the variable. */
export function setup(): void {
  process.env.TMPDIR = mkdtempSync(join(tmpdir(), 'loopwright-tests-'));
}

export function teardown(): void {
  const root = process.env.TMPDIR;
  if (root?.includes('loopwright-tests-')) rmSync(root, { recursive: true, force: true, maxRetries: 3 });
}
