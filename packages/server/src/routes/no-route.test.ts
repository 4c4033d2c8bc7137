/** Paths that are no route: each client is told in its own shape what its address should be. */
import { afterEach, describe, expect, it } from 'vitest';
import { openTestServer, type TestServer, type TestServerOptions } from '../testing/test-server.js';

const open: TestServer[] = [];
async function opened(options: TestServerOptions = {}): Promise<TestServer> {
  const server = await openTestServer(options);
  open.push(server);
  return server;
}
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

describe('a path that is no route', () => {
  it.each([
    ['/chat/completions', 'the base URL ends in /v1'],
    ['/v1/v1/chat/completions', 'the base URL ends in /v1'],
    ['/v1/chat/completions/chat/completions', 'the base URL ends in /v1'],
    ['/v1/responses', '/v1/chat/completions'],
    ['/v1/embeddings', '/v1/chat/completions'],
  ])('of an OpenAI client, %s, says in its shape what to do', async (path, remedy) => {
    const server = await opened();
    const { status, body } = await server.request('POST', path, {});
    expect([status, body]).toMatchObject([
      404,
      { error: { message: expect.stringContaining(remedy), type: 'invalid_request_error' } },
    ]);
  });

  it.each(['/v1/api/v1/client/config', '/api/v1/api/v1/client/config'])(
    'of a Tinker client, %s, says what its address is',
    async (path) => {
      const server = await opened();
      const { status, body } = await server.request('POST', path, {});
      expect(status).toBe(404);
      expect(JSON.stringify(body)).toContain('TINKER_BASE_URL is the address alone');
    },
  );

  it('of a wire that is off says how it is switched on', async () => {
    const server = await opened({ wires: ['sagemaker'] });
    for (const [path, wire] of [
      ['/v1/chat/completions', 'openai'],
      ['/api/v1/create_session', 'tinker'],
    ] as const) {
      const { status, body } = await server.request('POST', path, {});
      expect(status).toBe(404);
      expect(JSON.stringify(body)).toContain(`loopwright serve --wires sagemaker,${wire}`);
    }
  });

  it('of the registry stays in the shape of its own', async () => {
    const server = await opened();
    const { status, body } = await server.request('GET', '/v1/registry/versions/a/1/files/models/x');
    expect([status, body.code, body.error]).toEqual([404, 'unknown_version', undefined]);
  });
});
