/** What a sandbox refuses before anything runs. */
import { complaint } from '@loopwright/protocol';
import type { SandboxProgram } from './sandbox.js';

export const maxCodeCharacters = 1_000_000;
const maxFiles = 1000;
const maxFileBytes = 16_000_000;
const maxCalls = 10_000;

export function check(field: string, expected: string, isRight: boolean, got: unknown): void {
  if (!isRight) throw complaint({ field, expected, got: typeof got === 'object' ? typeof got : String(got) });
}

/** @throws `invalid_argument` */
export function checkText(field: string, text: unknown, max = maxCodeCharacters): void {
  if (typeof text !== 'string') throw complaint({ field, expected: 'text', got: typeof text });
  check(field, `at most ${max} characters`, text.length <= max, `${text.length} characters`);
}

/** @throws `invalid_argument` */
export function checkProgram(program: SandboxProgram, maxTimeoutMs: number): void {
  const { code, stdin = '', files = {}, calls = [], timeoutMs = maxTimeoutMs } = program;
  checkText('code', code);
  checkText('stdin', stdin, maxFileBytes);
  checkFiles(files);
  check('calls', `at most ${maxCalls}`, calls.length <= maxCalls, calls.length);
  for (const [i, { entry }] of calls.entries()) checkName(`calls[${i}].entry`, entry);
  check(
    'timeoutMs',
    `a number above 0, at most ${maxTimeoutMs}`,
    timeoutMs > 0 && timeoutMs <= maxTimeoutMs,
    timeoutMs,
  );
}

export function checkName(field: string, name: unknown): void {
  const isName = typeof name === 'string' && name.length <= 200 && /^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(name);
  check(field, 'the name of a function', isName, typeof name === 'string' ? `${name.length} characters` : typeof name);
}

function checkFiles(files: NonNullable<SandboxProgram['files']>): void {
  const all = Object.entries(files);
  check('files', `at most ${maxFiles}`, all.length <= maxFiles, all.length);
  let bytes = 0;
  for (const [path, content] of all) {
    const isInside =
      path.length <= 200 &&
      !/[\\\0:]/.test(path) &&
      path.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
    check('files', 'relative paths without . and .. , at most 200 characters', isInside, `a path of ${path.length}`);
    const isContent = typeof content === 'string' || content instanceof Uint8Array;
    check('files', 'text or bytes', isContent, typeof content);
    bytes += content.length;
  }
  check('files', `at most ${maxFileBytes} bytes in all`, bytes <= maxFileBytes, bytes);
}
