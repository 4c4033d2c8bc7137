/** The client in a browser: it bundles without Node and stays within its budget. */
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { expect, test } from 'vitest';

/** Gzipped, minified: what a page loads at once. Tokenizers and templates come in a chunk of their own, when asked for. */
const budgetBytes = 23_000;

test('the bundle holds no node import, no schema library, and fits its budget', { timeout: 120_000 }, async () => {
  const bundle = await rolldown({
    input: fileURLToPath(new URL('index.ts', import.meta.url)),
    platform: 'browser',
    resolve: { conditionNames: ['loopwright-source', 'import', 'browser', 'default'] },
    logLevel: 'silent',
  });
  const { output } = await bundle.generate({ format: 'esm', minify: true });
  await bundle.close();
  const chunks = output.flatMap((part) => (part.type === 'chunk' ? [part] : []));
  const entry = chunks.find((chunk) => chunk.isEntry);
  if (entry === undefined) throw new Error('no entry');
  for (const chunk of chunks) {
    expect([...chunk.imports, ...chunk.dynamicImports].filter((name) => name.startsWith('node:'))).toEqual([]);
    expect(chunk.code).not.toMatch(/from\s*["']node:/);
  }
  const modules = Object.keys(entry.modules);
  expect(modules.filter((name) => name.includes('/zod/'))).toEqual([]);
  expect(modules.filter((name) => name.includes('/packages/text/'))).toEqual([]);
  const atOnce = chunks.filter((chunk) => chunk === entry || entry.imports.includes(chunk.fileName));
  const bytes = atOnce.reduce((sum, { code }) => sum + gzipSync(code).length, 0);
  expect(bytes).toBeLessThan(budgetBytes);
});
