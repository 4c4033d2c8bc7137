/** Slow, silent, half-closed and malformed connections, over a real socket. */
import { mkdtempSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { FakeEngine } from '@loopwright/testkit';
import { pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import { type RunningServer, startServer } from '../main.js';
import { makeModelDirectory } from '../testing/test-server.js';
import type { Limits } from './limits.js';

const open: RunningServer[] = [];
const logged: string[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
  logged.length = 0;
});

async function started(limits: Partial<Limits>, apiKey?: string): Promise<RunningServer> {
  const stream = new Writable({
    write: (chunk, _encoding, done) => {
      logged.push(String(chunk));
      done();
    },
  });
  const server = await startServer({
    dataDir: mkdtempSync(join(tmpdir(), 'loopwright-http-')),
    models: [{ id: 'fake-model', directory: makeModelDirectory() }],
    engineFactory: async () => new FakeEngine(),
    logger: pino({ level: 'info' }, stream),
    limits,
    ...(apiKey === undefined ? {} : { apiKey }),
  });
  open.push(server);
  return server;
}

interface Line {
  readonly socket: Socket;
  /** All that came until the server closed the connection. */
  readonly rest: Promise<string>;
}

function line({ port }: RunningServer): Line {
  const socket = connect(port, '127.0.0.1');
  let text = '';
  socket.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  const rest = new Promise<string>((resolve) => socket.on('close', () => resolve(text)));
  socket.on('error', () => undefined); // a reset ends it as well
  return { socket, rest };
}

const head = (length: number) =>
  `POST / HTTP/1.1\r\nhost: 127.0.0.1\r\nx-amz-target: SageMaker.ListTrainingSessions\r\ncontent-length: ${length}\r\n\r\n`;

async function isWell({ url }: RunningServer): Promise<void> {
  expect((await fetch(`${url}/health`)).status).toBe(200);
}

describe('a connection', () => {
  it('whose headers never end is told so and closed', async () => {
    const server = await started({ headerMs: 200 });
    const { socket, rest } = line(server);
    const drip = setInterval(() => socket.write('x-a: b\r\n'), 20);
    socket.write('GET /health HTTP/1.1\r\n');
    const answer = await rest;
    clearInterval(drip);
    expect(answer).toContain('408');
    expect(answer).toContain('request_timeout');
    await isWell(server);
  });

  it('whose body stops is answered with what is missing, and its room is free again', async () => {
    const server = await started({ bodyIdleMs: 100, bodyMemoryBytes: 2000, unprovenMemoryBytes: 1000 });
    const slow = line(server);
    slow.socket.write(`${head(1000)}{"MaxResults"`);
    const answer = await slow.rest;
    expect(answer).toMatch(/^HTTP\/1.1 408 /);
    expect(answer).toContain('none after 13 bytes');
    const body = JSON.stringify({ NextToken: 'a'.repeat(900) });
    const { status } = await fetch(server.url, {
      method: 'POST',
      headers: { 'x-amz-target': 'SageMaker.ListTrainingSessions' },
      body,
    });
    expect(status).toBe(400);
    await isWell(server);
  });

  it('that dribbles a body without end is closed when its time is over', async () => {
    const server = await started({ headerMs: 150, requestMs: 300 });
    const { socket, rest } = line(server);
    socket.write(head(100_000));
    const drip = setInterval(() => socket.write(' '), 20);
    await rest;
    clearInterval(drip);
    await isWell(server);
  });

  it('that is half closed after its request still gets the answer', async () => {
    const server = await started({});
    const { socket, rest } = line(server);
    socket.end(`${head(2)}{}`);
    expect(await rest).toContain('TrainingSessionSummaries');
  });

  it.each(['end', 'destroy'] as const)(
    'that goes away in the middle of a body (%s) is no fault of the server',
    async (how) => {
      const server = await started({});
      const { socket, rest } = line(server);
      socket.write(`${head(1000)}{"MaxResults"`);
      socket[how]();
      await rest;
      await isWell(server);
      expect(logged.filter((text) => text.includes('"level":50'))).toEqual([]);
    },
  );

  it('with headers above the limit is told so', async () => {
    const server = await started({ headerBytes: 2048 });
    const { socket, rest } = line(server);
    socket.write(`GET /health HTTP/1.1\r\nx-long: ${'a'.repeat(3000)}\r\n\r\n`);
    const answer = await rest;
    expect(answer).toMatch(/^HTTP\/1.1 431 /);
    expect(answer).toContain('at most 2048 bytes');
  });

  it.each(['\r\n\r\nnonsense\r\n\r\n', 'GET / HTTP/9.9\r\n\r\n', '\u0016\u0003\u0001\u0002\u0000'])(
    'that speaks no HTTP (%j) is closed',
    async (bytes) => {
      const server = await started({});
      const { socket, rest } = line(server);
      socket.write(bytes);
      expect(await rest).toContain('400 Bad Request');
      await isWell(server);
    },
  );

  it('with two lengths is refused, so that nobody smuggles a request behind another', async () => {
    const server = await started({});
    const { socket, rest } = line(server);
    socket.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n');
    expect(await rest).toContain('400 Bad Request');
  });
});

describe('requests beyond what is taken at once', () => {
  it('are told when to come again', async () => {
    const server = await started({ requests: 0 });
    const answer = await fetch(`${server.url}/v1/models`);
    expect(answer.status).toBe(429);
    expect(answer.headers.get('retry-after')).toBe('1');
    expect(await answer.json()).toMatchObject({ code: 'limit_exceeded', details: { field: 'requests' } });
  });

  it('wait for room for their bodies, and are all answered', async () => {
    const server = await started({ bodyMemoryBytes: 300_000, unprovenMemoryBytes: 100_000 });
    const body = JSON.stringify({ NextToken: 'x'.repeat(90_000) });
    const headers = { 'x-amz-target': 'SageMaker.ListTrainingSessions' };
    const answers = await Promise.all(
      Array.from({ length: 24 }, () => fetch(server.url, { method: 'POST', headers, body })),
    );
    expect(answers.map(({ status }) => status)).toEqual(new Array(24).fill(400));
  });
});

it('a signed body above its own limit is refused before it is read', async () => {
  const server = await started({ signedBodyBytes: 1000 }, 'a-secret-key');
  const now = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
  const credential = `any/${now.slice(0, 8)}/r/sagemaker/aws4_request`;
  const authorization = `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=host;x-amz-date, Signature=${'0'.repeat(64)}`;
  const { socket, rest } = line(server);
  socket.write(
    `POST / HTTP/1.1\r\nhost: a\r\nx-amz-date: ${now}\r\nauthorization: ${authorization}\r\ncontent-length: 1001\r\n\r\n`,
  );
  const answer = await rest;
  expect(answer).toMatch(/^HTTP\/1.1 413 /);
  expect(answer).toContain('X-Amz-Content-SHA256');
});
