import { describe, expect, it } from 'vitest';
import { requireSupportedHost } from './host.js';

describe('the embedded engine', () => {
  it.each([
    ['linux', 'x64', true],
    ['linux', 'arm64', true],
    ['darwin', 'arm64', false],
    ['win32', 'x64', false],
    ['win32', 'arm64', false],
  ])('runs on %s %s', (platform, arch, isGlibc) => {
    expect(() => requireSupportedHost({ platform, arch, isGlibc })).not.toThrow();
  });

  it.each([
    ['darwin', 'x64', false, 'darwin x64'],
    ['linux', 'x64', false, 'linux x64 without glibc'],
    ['linux', 'riscv64', true, 'linux riscv64'],
    ['freebsd', 'x64', false, 'freebsd x64'],
  ])('says on %s %s (glibc: %s) where it does, and what else there is', (platform, arch, isGlibc, got) => {
    expect(() => requireSupportedHost({ platform, arch, isGlibc })).toThrow(
      expect.objectContaining({
        code: 'unsupported_host',
        details: {
          field: 'host',
          expected: 'Linux with glibc (x64, arm64), macOS on Apple silicon, or Windows',
          got,
          remedy: expect.stringContaining('LOOPWRIGHT_URL'),
        },
      }),
    );
  });

  it('runs here', () => {
    expect(() => requireSupportedHost()).not.toThrow();
  });
});
