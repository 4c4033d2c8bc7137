import { checkpointDescription, openRun } from '@loopwright/loops/node';
import { temporaryDirectory } from '@loopwright/testkit';
import { expect, test } from 'vitest';
import { checkTrainedBy, type SessionSource } from './trained-by.js';

const place = '/data';
const version = { id: 'math/12', name: 'math/12' };

/** A registry where math/12 was saved by the first of these sessions, its parent by the next, and so on. */
function registryOf(sessions: readonly string[], states: Readonly<Record<string, string>> = {}): SessionSource {
  const lineage = (sessionName: string) => ({
    ...{ sessionName, sessionId: '', operationId: '', step: 1, parent: null },
    data: { digest: null, passes: 1, datums: 1, tokens: 1 },
  });
  return {
    lineage: async () => sessions.map((name) => ({ lineage: lineage(name) })),
    list: async ({ session }) => [{ description: states[session] ?? 'by hand' }],
  };
}

async function runIn(folder: string, session?: { readonly name: string; readonly place: string }) {
  const run = await openRun({ folder, config: {} });
  if (session !== undefined) await run.attach({ session });
  await run.finish('interrupted');
  return run;
}

test('the run of the session that saved it is taken; another is refused with both sessions', async () => {
  await using directory = await temporaryDirectory();
  const [own, other] = [`${directory.path}/own`, `${directory.path}/other`];
  await runIn(own, { name: 'own', place });
  await runIn(other, { name: 'other', place });
  const registry = registryOf(['own']);
  expect(await checkTrainedBy(registry, { version, runs: [own], place })).toEqual([]);
  await expect(checkTrainedBy(registry, { version, runs: [own, other], place })).rejects.toMatchObject({
    code: 'invalid_argument',
    details: {
      field: 'run',
      expected: 'a run that trained math/12 or what it came from, in session own',
      got: expect.stringMatching(/other, which trained in other$/),
    },
  });
});

test('an earlier session whose run is not named is told; with its run it is not', async () => {
  await using directory = await temporaryDirectory();
  const [second, first] = [`${directory.path}/second`, `${directory.path}/first`];
  await runIn(second, { name: 'second', place });
  await runIn(first, { name: 'first', place });
  const registry = registryOf(['second', 'first']);
  expect(await checkTrainedBy(registry, { version, runs: [second], place })).toEqual([
    'not compared with what session first trained on before: name the runs of these sessions too',
  ]);
  expect(await checkTrainedBy(registry, { version, runs: [second, first], place })).toEqual([]);
});

test('a run that went on knows its earlier sessions by their checkpoints', async () => {
  await using directory = await temporaryDirectory();
  const folder = `${directory.path}/run`;
  const { id } = await runIn(folder, { name: 'first', place });
  const run = await openRun({ folder, config: {}, resumeAfter: 0 });
  await run.attach({ session: { name: 'second', place } });
  await run.finish();
  const saved = { first: `${checkpointDescription(id)}3` };
  expect(await checkTrainedBy(registryOf(['first'], saved), { version, runs: [folder], place })).toEqual([]);
  expect(await checkTrainedBy(registryOf(['second', 'first'], saved), { version, runs: [folder], place })).toEqual([]);
  expect(await checkTrainedBy(registryOf(['third']), { version, runs: [folder], place })).toEqual([
    expect.stringContaining('it was resumed'),
  ]);
});

test('of a run without a session, or with one elsewhere, it is said that nobody knows', async () => {
  await using directory = await temporaryDirectory();
  const [none, elsewhere] = [`${directory.path}/none`, `${directory.path}/elsewhere`];
  await runIn(none);
  await runIn(elsewhere, { name: 'own', place: 'http://127.0.0.1:1' });
  expect(await checkTrainedBy(registryOf(['own', 'before']), { version, runs: [none, elsewhere], place })).toEqual([
    expect.stringMatching(/^not known whether .*none trained math\/12: it recorded no session$/),
    expect.stringContaining('its session was at http://127.0.0.1:1'),
  ]);
  expect(await checkTrainedBy(registryOf(['own']), { version, runs: [], place })).toEqual([]);
});
