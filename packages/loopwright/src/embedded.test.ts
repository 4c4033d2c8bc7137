import { randomUUID } from 'node:crypto';
import { access } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readSettings } from './config.js';
import { startEmbeddedServer } from './embedded.js';

it('refuses a host without a runtime before it makes anything', async () => {
  const home = join(tmpdir(), randomUUID());
  const host = { platform: 'darwin', arch: 'x64', isGlibc: false };
  const start = startEmbeddedServer(readSettings({ LOOPWRIGHT_HOME: home }), { host });
  await expect(start).rejects.toMatchObject({
    code: 'unsupported_host',
    details: { field: 'host', got: 'darwin x64', remedy: expect.stringContaining('LOOPWRIGHT_URL') },
  });
  await expect(access(home)).rejects.toThrow();
});
