/** Loader hooks: relative imports say `.js` and mean `.ts`; types are stripped by the transformer that the test runner uses. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { transform } from 'rolldown/utils';

export async function resolve(specifier, context, next) {
  const isOurs = specifier.startsWith('.') && context.parentURL?.endsWith('.ts');
  return next(isOurs ? specifier.replace(/\.js$/, '.ts') : specifier, context);
}

export async function load(url, context, next) {
  if (!url.endsWith('.ts')) return next(url, context);
  const path = fileURLToPath(url);
  const { code } = await transform(path, await readFile(path, 'utf8'), { target: 'es2022' });
  return { format: 'module', source: code, shortCircuit: true };
}
