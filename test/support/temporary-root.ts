/**
 * One temporary directory for a whole test run, removed at its end: what a test or a killed process leaves behind goes with it. It has
 * a model cache as well, so that no test sees the one of the person who runs it.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Runs before the workers start, which inherit the variables; what it returns runs after them. */
export default function setup(): () => void {
  const root = mkdtempSync(join(tmpdir(), 'loopwright-tests-'));
  process.env.TMPDIR = root;
  process.env.HF_HUB_CACHE = join(root, 'hub');
  return () => rmSync(root, { recursive: true, force: true, maxRetries: 3 });
}
