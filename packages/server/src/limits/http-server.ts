/** The socket: slow, half-closed and malformed connections are ended here, before any route sees them. */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import type { App } from '../routes/context.js';
import type { Limits } from './limits.js';

/** How often slow requests are looked for: a limit is kept within so much. */
const maxCheckMs = 5_000;

export function createHttpServer(app: App, limits: Limits): Server {
  const { headerBytes, headerMs, requestMs, connections, keepAliveMs, answerIdleMs } = limits;
  const server = createAdaptorServer({
    fetch: app.fetch,
    serverOptions: {
      maxHeaderSize: headerBytes,
      headersTimeout: headerMs,
      requestTimeout: requestMs,
      keepAliveTimeout: keepAliveMs,
      connectionsCheckingInterval: Math.min(maxCheckMs, headerMs),
    },
  }) as Server; // true: no other kind of server was asked for
  server.maxConnections = connections;
  const answering = new WeakSet<Socket>();
  server.on('request', ({ socket }, response) => {
    answering.add(socket);
    response.once('close', () => answering.delete(socket));
  });
  // Without a listener every silent socket would be destroyed, held requests too: only those go whose client takes nothing.
  server.setTimeout(answerIdleMs, (socket) => {
    if (socket.writableLength > 0) socket.destroy();
  });
  server.on('clientError', (error: NodeJS.ErrnoException, stream) => {
    const socket = stream as Socket; // true: of a server without TLS
    // In the middle of an answer, words of ours would be read as part of it.
    if (socket.writable && !answering.has(socket) && error.code !== 'ECONNRESET')
      socket.write(refusal(error.code, limits));
    socket.destroySoon();
  });
  return server;
}

function refusal(code: string | undefined, { headerBytes, headerMs, requestMs }: Limits): string {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return response('431 Request Header Fields Too Large', {
        code: 'invalid_argument',
        field: 'headers',
        expected: `at most ${headerBytes} bytes`,
        got: 'more',
      });
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return response('408 Request Timeout', {
        code: 'request_timeout',
        field: 'request',
        expected: `headers within ${headerMs / 1000} s, all of it within ${requestMs / 1000} s`,
        got: 'a part of it',
      });
    default:
      return response('400 Bad Request', {
        code: 'invalid_argument',
        field: 'request',
        expected: 'HTTP/1.1',
        got: 'bytes that are not',
      });
  }
}

interface Refusal {
  readonly code: string;
  readonly field: string;
  readonly expected: string;
  readonly got: string;
}

function response(status: string, { code, field, expected, got }: Refusal): string {
  const message = `${field}: expected ${expected}, got ${got}`;
  const body = JSON.stringify({ code, message, details: { field, expected, got } });
  const headers = `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close`;
  return `HTTP/1.1 ${status}\r\n${headers}\r\n\r\n${body}`;
}
