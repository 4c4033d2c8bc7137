/** A server that is asked to end: within its time, without losing anything that it has accepted; at once where it is asked twice. */
import { readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@loopwright/testkit';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type RunningCommand, startCommand } from './support/command.js';
import { passBody, RawServer, sampleBody, stepBody } from './support/raw-server.js';
import { makeTinyModel } from './support/tiny-model.js';

const graceSeconds = 20;

const tokensOfPass = 400;
const trainingOf = (number: number) =>
  number % 2 === 1 ? passBody(number, { rows: 4, tokens: tokensOfPass / 4 }) : stepBody(number);

let folder: TemporaryDirectory;
let home: string;
let running: RunningCommand[];

beforeEach(async () => {
  folder = await temporaryDirectory();
  home = join(folder.path, 'home');
  running = [];
  const model = await makeTinyModel(join(home, 'models', 'tiny'));
  await writeFile(join(model, 'chat_template.jinja'), '{% for m in messages %}{{ m.content }}{% endfor %}');
});
afterEach(async () => {
  for (const { child, end } of running) {
    child.kill('SIGKILL');
    await end;
  }
  await folder[Symbol.asyncDispose]();
});

async function serve(...args: string[]): Promise<{ command: RunningCommand; server: RawServer }> {
  const command = startCommand(['serve', '--port', '0', '--json', '--log-level', 'error', ...args], { home });
  running.push(command);
  const { url } = JSON.parse(await command.output(/\n/)) as { url: string };
  return { command, server: new RawServer(url) };
}

async function secondsToEnd({ end }: RunningCommand): Promise<number> {
  const started = performance.now();
  const { code, stderr } = await end;
  expect(code).toBe(130);
  expect(stderr).not.toContain('internal error');
  return (performance.now() - started) / 1000;
}

describe.runIf(process.platform === 'linux')('SIGTERM', () => {
  test('while clients submit, poll and chat: each is answered or told to come again, and all that was accepted is done later', async () => {
    const { command, server } = await serve();
    await server.createSession('s', 'tiny');
    const accepted: { kind: 'operations' | 'sampling-operations'; id: string }[] = [];
    const refusals: number[] = [];
    let isUp = true;
    /** Submits until the server is gone. */
    const submitAll = async (kind: 'operations' | 'sampling-operations', bodyOf: (turn: number) => object) => {
      for (let turn = 1; isUp; turn++) {
        const answer = await server.submit('s', kind, bodyOf(turn)).catch(() => undefined);
        if (answer?.status === 200) accepted.push({ kind, id: String(answer.body.operationId) });
        else {
          isUp = false;
          if (answer !== undefined) refusals.push(answer.status);
        }
      }
    };
    const sampling = (turn: number) => sampleBody({ maxTokens: 400, numSamples: 8, seed: turn });
    const work = [
      submitAll('operations', trainingOf),
      submitAll('sampling-operations', sampling),
      submitAll('sampling-operations', sampling),
    ];
    while (accepted.length < 60) await new Promise((resolve) => setImmediate(resolve));
    const last = accepted.findLast(({ kind }) => kind === 'sampling-operations')!;
    const held = server.poll('s', last.kind, last.id, 50).then(
      ({ status }) => status,
      () => 'closed',
    );
    const chat = { messages: [{ role: 'user', content: 'hello' }], max_tokens: 400, n: 100, temperature: 1 };
    const chatted = server.send({ path: '/training-sessions/s/sample', body: chat }).then(
      ({ status, headers }) => [status, headers.get('retry-after')],
      () => ['closed'],
    );
    await server.control('ListTrainingSessions');
    command.child.kill('SIGTERM');
    expect(await secondsToEnd(command)).toBeLessThan(graceSeconds);
    expect([[503, '1'], ['closed']]).toContainEqual(await chatted);
    await Promise.all(work);
    expect(refusals.filter((status) => status !== 503)).toEqual([]);
    expect([200, 503, 'closed']).toContain(await held);

    const again = await serve();
    for (const { kind, id } of accepted) {
      expect(await again.server.result('s', kind, id)).toMatchObject({ status: 'Completed' });
    }
    const training = accepted.filter(({ kind }) => kind === 'operations').length;
    // The next one may have been accepted without its answer: it is found, or it is new.
    const repeated = await again.server.submit('s', 'operations', trainingOf(training + 1));
    await again.server.result('s', 'operations', String(repeated.body.operationId));
    const usage = (await again.server.detail('s')).BillableTokenUsage as Record<string, number>; // true: of every detail
    expect(usage.TrainingTokenCount).toBe(Math.ceil((training + 1) / 2) * tokensOfPass);
    again.command.child.kill('SIGTERM');
    await again.command.end;
  });

  test('with connections that never say anything, or stop in the middle: they hold nothing up', async () => {
    const { command, server } = await serve();
    const port = Number(new URL(server.url).port);
    const sockets = ['', 'GET /health HTTP/1.1\r\n', 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n{'].map(
      (text) => {
        const socket = connect(port, '127.0.0.1');
        socket.on('error', () => undefined).write(text);
        return socket;
      },
    );
    await server.control('ListTrainingSessions');
    command.child.kill('SIGTERM');
    expect(await secondsToEnd(command)).toBeLessThan(graceSeconds);
    for (const socket of sockets) socket.destroy();
  });

  test('twice ends it at once, engines too, and what was accepted is done later', async () => {
    const { command, server } = await serve();
    await server.createSession('s', 'tiny');
    const { body } = await server.submit('s', 'operations', passBody(1, { rows: 64, tokens: 400 }));
    const { pid } = command.child;
    const engine = Number((await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(' ')[0]);
    command.child.kill('SIGTERM');
    await command.output(/Stopping/);
    command.child.kill('SIGTERM');
    expect(await secondsToEnd(command)).toBeLessThan(5);
    while (isAlive(engine)) await new Promise((resolve) => setTimeout(resolve, 20)); // it ends by itself; the test has a time limit

    const again = await serve();
    expect(await again.server.result('s', 'operations', String(body.operationId))).toMatchObject({
      status: 'Completed',
    });
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
