/** Checks what each package would publish: its fields, its entries, its files, and that it needs no install script. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly license?: string;
  readonly type?: string;
  readonly description?: string;
  readonly engines?: { readonly node?: string };
  readonly exports?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
}

const root = fileURLToPath(new URL('..', import.meta.url));
const installScripts = ['preinstall', 'install', 'postinstall', 'prepare'];
const mb = 1_000_000;
/** Packed sizes above this are a mistake, such as fixtures that slipped in. */
const maxPackedBytes = 8 * mb;

/** What is wrong with a package, in sentences. */
function problemsOf(directory: string): string[] {
  const manifest = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as Manifest; // true: npm reads it as that
  const problems: string[] = [];
  const say = (isWrong: boolean, what: string): void => {
    if (isWrong) problems.push(`${manifest.name}: ${what}`);
  };
  say(manifest.license !== 'Apache-2.0', 'license: expected Apache-2.0');
  say(manifest.type !== 'module', 'type: expected module');
  say(!manifest.engines?.node?.startsWith('>=20'), 'engines.node: expected >=20 or a later 20');
  say(!manifest.description, 'description: expected a sentence, got none');
  say(!existsSync(join(directory, 'LICENSE')), 'LICENSE: expected a copy, got none');
  say(!existsSync(join(directory, 'README.md')), 'README.md: expected one, got none');
  for (const script of installScripts)
    say(script in (manifest.scripts ?? {}), `scripts.${script}: expected no install script`);
  const files = new Set(
    packedFiles(directory, (bytes) =>
      say(
        bytes > maxPackedBytes,
        `packed size: expected at most ${maxPackedBytes / mb} MB, got ${(bytes / mb).toFixed(1)}`,
      ),
    ),
  );
  for (const [subpath, conditions] of Object.entries(manifest.exports ?? {})) {
    for (const [condition, file] of Object.entries(conditions)) {
      say(
        !files.has(file.replace(/^\.\//, '')),
        `exports["${subpath}"].${condition}: expected a file that is packed, got ${file}`,
      );
    }
  }
  for (const [name, file] of Object.entries(manifest.bin ?? {})) {
    const path = file.replace(/^\.\//, '');
    say(!files.has(path), `bin.${name}: expected a file that is packed, got ${file}`);
    say(
      files.has(path) && !readFileSync(join(directory, path), 'utf8').startsWith('#!/usr/bin/env node\n'),
      `bin.${name}: expected #!/usr/bin/env node on the first line`,
    );
    // npm links it when it installs, and leaves out in silence what is not there yet.
    say(path.startsWith('dist/'), `bin.${name}: expected a file that is there before the build, got ${file}`);
  }
  for (const file of files)
    say(/\.test\.(ts|js|d\.ts)$/.test(file) && !file.startsWith('templates/'), `files: expected no tests, got ${file}`);
  for (const file of files) say(/\/testing\//.test(file), `files: expected no test helpers, got ${file}`);
  for (const name of Object.keys(manifest.dependencies ?? {}))
    say(name === '@loopwright/testkit', `dependencies: expected no ${name} in what is published`);
  return problems;
}

function packedFiles(directory: string, onSize: (bytes: number) => void): string[] {
  const output = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: directory,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const parsed = JSON.parse(output) as unknown;
  // npm 11 prints a list, npm 12 an object by name
  const [pack] = Object.values(parsed as object) as {
    readonly size: number;
    readonly files: readonly { readonly path: string }[];
  }[];
  if (pack === undefined) throw new Error(`npm pack told nothing of ${directory}`);
  onSize(pack.size);
  return pack.files.map(({ path }) => path);
}

const directories = readdirSync(join(root, 'packages')).map((name) => join(root, 'packages', name));
const published = directories.filter((directory) => {
  const { private: isPrivate } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as Manifest;
  return isPrivate !== true;
});
const problems = published.flatMap(problemsOf);
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
else console.log(`${published.length} packages are laid out as they should be`);
