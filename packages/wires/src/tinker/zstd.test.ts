import { expect, it } from 'vitest';
import { decompressZstd } from './zstd.js';

const bytes = (base64: string) => Uint8Array.from(Buffer.from(base64, 'base64'));
/** `hello zstd` 20 times, and 16 MiB of zeros, by zstandard 0.25 at level 3. */
const text = 'KLUv/SDIjQAAUGhlbGxvIHpzdGQBALtSBQk=';
const zeros =
  'KLUv/YBYAAAAAVQAABAAAAEA+/85wAICABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAADABAA';

it('a body is unpacked', () => {
  expect(Buffer.from(decompressZstd(bytes(text), 1000)).toString()).toBe('hello zstd'.repeat(20));
});

it('a small body that unpacks to a large one is refused at the limit', () => {
  expect(() => decompressZstd(bytes(zeros), 1 << 20)).toThrow(/1048576 bytes unpacked/);
  expect(decompressZstd(bytes(zeros), 1 << 24)).toHaveLength(1 << 24);
});

it.each([
  ['other bytes', Uint8Array.of(1, 2, 3, 4)],
  ['nothing', new Uint8Array(0)],
  ['a cut body', bytes(text).subarray(0, 14)],
])('%s is refused', (_, body) => {
  expect(() => decompressZstd(body, 1000)).toThrow(/zstd/);
});
