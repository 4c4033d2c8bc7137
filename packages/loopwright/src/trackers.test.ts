import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { readSettings } from './config.js';
import { mlflowTracker } from './trackers.js';

beforeEach(() => {
  vi.stubEnv('MLFLOW_TRACKING_URI', undefined);
  vi.stubEnv('MLFLOW_TRACKING_TOKEN', undefined);
});
afterEach(() => {
  vi.unstubAllEnvs();
});

/** What an MLflow server at this address is sent with the first call. */
async function firstCall(options: Parameters<typeof mlflowTracker>[0]): Promise<[string, string | null]> {
  const seen: [string, string | null][] = [];
  const call: typeof fetch = async (url, init) => {
    seen.push([String(url), new Headers(init?.headers).get('authorization')]);
    return new Response('{}', { status: 403 });
  };
  const tracker = mlflowTracker({ ...options, fetch: call });
  const run = { id: 'a', name: 'b', config: {}, tags: {}, startedAtMs: 0, folder: '/none', warn: () => undefined };
  await tracker.start(run);
  return seen[0]!; // true: it calls before start resolves
}

it('mlflowTracker takes server, experiment and credentials from the environment', async () => {
  vi.stubEnv('MLFLOW_TRACKING_URI', 'http://tracking.example/');
  vi.stubEnv('MLFLOW_EXPERIMENT_NAME', 'math');
  vi.stubEnv('MLFLOW_TRACKING_TOKEN', 'abc');
  const [url, authorization] = await firstCall({});
  expect(url).toBe('http://tracking.example/api/2.0/mlflow/experiments/get-by-name?experiment_name=math');
  expect(authorization).toBe('Bearer abc');
});

it('and gives the credentials of one server to no other', async () => {
  vi.stubEnv('MLFLOW_TRACKING_URI', 'http://tracking.example');
  vi.stubEnv('MLFLOW_TRACKING_TOKEN', 'abc');
  expect((await firstCall({ uri: 'http://other.example' }))[1]).toBeNull();
});

it('says what to set where there is no server', () => {
  expect(() => mlflowTracker()).toThrow('MLFLOW_TRACKING_URI');
  expect(readSettings({}).mlflow.uri).toBeUndefined();
});
