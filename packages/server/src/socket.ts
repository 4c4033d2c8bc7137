/** The socket of a server: listening, and closing behind the last answers. */
import type { Server } from 'node:http';
import { complaint, type LoopwrightError } from '@loopwright/protocol';

/** @throws `port_in_use` */
export async function listen(http: Server, port: number, host: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    http.once('error', (error: NodeJS.ErrnoException) => {
      reject(error.code === 'EADDRINUSE' ? portInUse(port, host, error) : error);
    });
    http.listen(port, host, resolve);
  });
}

function portInUse(port: number, host: string, cause: Error): LoopwrightError {
  return complaint({
    code: 'port_in_use',
    field: 'port',
    expected: 'a free port',
    got: `${port} on ${host}, which another program listens on`,
    cause,
  });
}

/** Ends the service first: that answers held requests, so that the socket closes quickly. */
export async function closeHttp(http: Server, closeService: () => Promise<void>): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    http.close(() => resolve());
  });
  http.closeIdleConnections();
  await closeService();
  http.closeAllConnections();
  await closed;
}
