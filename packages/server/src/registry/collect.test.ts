/** Garbage collection as a property: whatever happens in whatever order, what can be reached is whole, and what can't goes. */
import { existsSync, mkdtempSync, readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FileBlobStore } from '../blobs/file-blob-store.js';
import { openDatabase } from '../store/open-database.js';
import { ManualClock } from '../testing/manual-clock.js';
import { pass, saveState, saveWeights, step } from '../testing/operations.js';
import { openTestServer } from '../testing/test-server.js';

const group = 'sagemaker-default';
const action = fc.oneof(
  fc.record({ type: fc.constant('save' as const), ttl: fc.constantFrom(null, 30, 90), session: fc.nat(1) }),
  fc.record({ type: fc.constant('state' as const), session: fc.nat(1) }),
  fc.record({ type: fc.constant('train' as const), token: fc.integer({ min: 1, max: 3 }), session: fc.nat(1) }),
  fc.record({
    type: fc.constantFrom('delete' as const, 'keep' as const, 'load' as const),
    number: fc.integer({ min: 1, max: 6 }),
  }),
  fc.record({ type: fc.constantFrom('sweep' as const, 'wait' as const) }),
);

async function payloadCount(dataDir: string): Promise<number> {
  const database = openDatabase(join(dataDir, 'loopwright.db'));
  const rows = await database.selectFrom('small_payloads').select('hash').execute();
  await database.destroy();
  return rows.length;
}

describe('garbage collection', () => {
  it('never takes what a version that can be had, or an open session, needs; and leaves nothing that nobody needs', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 4, maxLength: 16 }), async (actions) => {
        const dataDir = mkdtempSync(join(tmpdir(), 'loopwright-collect-'));
        const clock = new ManualClock();
        const root = join(dataDir, 'blobs');
        const server = await openTestServer({ dataDir, clock, blobs: new FileBlobStore({ root, graceMs: 0 }) });
        const blobNames = () =>
          (existsSync(root) ? readdirSync(root, { recursive: true, withFileTypes: true }) : [])
            .filter((entry) => entry.isFile())
            .map(({ name }) => name);
        const path = (number: number) => `/v1/registry/versions/${group}/${number}`;
        const listed = async () =>
          (await server.request('GET', '/v1/registry/versions')).body.versions as { number: number }[];
        /** Reads every file of every version that is listed; its hash is checked on the way. */
        const readAll = async () => {
          for (const { number } of await listed()) {
            const { files } = (await server.request('GET', path(number))).body as {
              files: { path: string; sha256: string }[];
            };
            expect(files.length).toBeGreaterThan(0);
            for (const file of files) expect(blobNames()).toContain(file.sha256);
            // The zip is made of verified files alone: a damaged or missing one is refused with an error.
            const archive = await server.fetch(`${path(number)}/archive`);
            expect(archive.status).toBe(200);
            await archive.arrayBuffer();
          }
        };
        const names = ['a', 'b'];
        const next = [1, 1];
        for (const name of names) await server.createSession(name);
        const train = async (session: number, operation: Parameters<typeof server.train>[2]) =>
          server.train(names[session]!, next[session]!++, operation);
        try {
          for (const one of actions) {
            if (one.type === 'save') await train(one.session, saveWeights(one.ttl));
            else if (one.type === 'state') await train(one.session, saveState);
            else if (one.type === 'train') {
              await train(one.session, pass([one.token]));
              await train(one.session, step());
            } else if (one.type === 'delete') await server.request('DELETE', path(one.number));
            else if (one.type === 'keep') await server.request('PATCH', path(one.number), { expiresAtMs: null });
            else if (one.type === 'load') {
              const operation = {
                type: 'load-state',
                version: `${group}/${one.number}`,
                loadOptimizer: false,
              } as const;
              const answer = await server.submit('a', next[0]!++, operation);
              if (answer.status === 200) await server.result('a', String(answer.body.operationId));
            } else if (one.type === 'wait') clock.advance(60_000);
            else await server.sweep();
            await readAll();
          }
          // Sessions that are lost to the engine come back from what is kept.
          server.engine.crash();
          for (const session of [0, 1]) expect((await train(session, pass())).status).toBe('Completed');
          for (const name of names) {
            await server.control('StopTrainingSession', { TrainingSessionName: name });
            await server.status(name, 'Stopped');
          }
          await server.sweep();
          await readAll();
          // With versions and sessions gone, nothing is left.
          for (const { number } of await listed()) await server.request('DELETE', path(number));
          for (const name of names) await server.control('DeleteTrainingSession', { TrainingSessionName: name });
          for (let tries = 0; tries < 50 && (blobNames().length > 0 || (await payloadCount(dataDir)) > 0); tries++) {
            await new Promise((resolve) => setImmediate(resolve));
            clock.advance(120_000);
            await server.sweep();
          }
          expect(blobNames()).toEqual([]);
          expect(await payloadCount(dataDir)).toBe(0);
        } finally {
          await server.close();
          await rm(dataDir, { recursive: true, force: true });
        }
      }),
      // Each run takes half a second, so that a failing one is shown as it is. The example: a session stands on a version that is deleted.
      {
        numRuns: 20,
        seed: 7,
        endOnFailure: true,
        examples: [
          [
            [
              { type: 'train', token: 1, session: 1 },
              { type: 'state', session: 1 },
              { type: 'load', number: 1 },
              { type: 'delete', number: 1 },
              { type: 'sweep' },
            ],
          ],
        ],
      },
    );
  }, 240_000);
});
