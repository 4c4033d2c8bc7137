/**
 * Records what clients really send, for the tests that change it: one run of our client and of the routes that it doesn't use, against
 * our own server, written to `requests.json` with ids as placeholders.
 *
 *   npx tsx test/hostile/record.ts
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startServer } from '@loopwright/server';
import { temporaryDirectory } from '@loopwright/testkit';
import { rlDatum, ServiceClient } from 'loopwright';
import { RawServer } from '../support/raw-server.js';
import { makeTinyModel } from '../support/tiny-model.js';
import { placeholders, type RecordedRequest } from './requests.js';

/** Of one kind of request: method, route or action, and member of the operation. */
const keptOfKind = 2;

await using folder = await temporaryDirectory();
const model = { id: 'tiny', directory: await makeTinyModel(join(folder.path, 'tiny')) };
await using server = await startServer({ dataDir: join(folder.path, 'data'), models: [model] });
const recorded: RecordedRequest[] = [];
const send = globalThis.fetch;
globalThis.fetch = async (input, init = {}) => {
  const url = new URL(String(input));
  const body = typeof init.body === 'string' ? init.body : undefined;
  recorded.push({
    method: init.method ?? 'GET',
    path: url.pathname + url.search,
    headers: Object.fromEntries(new Headers(init.headers)),
    ...(body === undefined ? {} : { body: JSON.parse(body) }),
  });
  return send(input, init);
};

const service = new ServiceClient({ baseUrl: server.url });
const training = await service.createLoraTrainingClient({
  baseModel: 'tiny',
  rank: 2,
  seed: 1,
  name: placeholders.session,
});
const sampler = await training.saveWeightsAndGetSamplingClient();
const { sequences } = await sampler.sample([5, 6, 7], {
  ...{ numSamples: 2, maxTokens: 4, temperature: 0.7, topK: 5, topP: 0.9, seed: 3, stop: ['x'] },
});
await sampler.computeLogprobs([5, 6, 7]);
const data = [
  rlDatum({ prompt: [5, 6, 7], sequence: sequences[0]!, advantage: 1 }),
  rlDatum({ prompt: [5, 6, 7], sequence: sequences[1]!, advantage: -1 }),
];
for (const loss of ['importance_sampling', 'ppo', 'cispo'] as const) await training.forwardBackward(data, loss);
await training.forward(
  [{ modelInput: [5, 6], lossFnInputs: { targetTokens: [6, 7], weights: [0, 1] } }],
  'cross_entropy',
);
await training.optimStep({ learningRate: 1e-4, weightDecay: 0.1 });
const { modelPackageArn } = await training.saveState({ description: 'a state' });
await training.loadStateWithOptimizer(modelPackageArn);
await service.listSessions({ nameContains: 'rec' });
await service.listModelPackages({ kind: 'state' });

const raw = new RawServer(server.url);
const name = placeholders.session;
const messages = [{ role: 'user', content: 'a b' }];
await raw.send({ path: `/training-sessions/${name}/sample`, body: { messages, max_tokens: 2, temperature: 1, n: 2 } });
await raw.send({
  path: `/training-sessions/${name}/sample-with-response-stream`,
  body: { messages, max_tokens: 2, stream: true, stream_options: { include_usage: true } },
});
for (const path of ['/v1/chat/completions', '/openai/v1/chat/completions']) {
  await raw.send({
    path,
    body: { model: name, messages, max_tokens: 2, temperature: 0.5, n: 2, stop: ['x'], seed: 1 },
  });
}
await raw.send({ path: '/v1/completions', body: { model: name, prompt: 'a b', max_tokens: 2, logprobs: 1 } });
for (const path of ['/health', '/v1/models', '/v1/usage?by=session&from=0', `/v1/sessions/${name}/trace`]) {
  await raw.send({ method: 'GET', path });
}
for (const path of [
  '/api/models/loopwright/tiny',
  '/api/models/tiny/tree/main?recursive=true',
  '/loopwright/tiny/resolve/main/config.json',
]) {
  await raw.send({ method: 'GET', path });
}
const hub = { HubName: 'SageMakerPublicHub', HubContentType: 'Model' };
await raw.control('ListHubContents', { ...hub, NameContains: 'tin', MaxResults: 10 });
await raw.control('DescribeHubContent', { ...hub, HubContentName: 'tiny' });
await raw.control('CreateModelPackageGroup', { ModelPackageGroupName: 'group', ModelPackageGroupDescription: 'text' });
await raw.control('DescribeModelPackageGroup', { ModelPackageGroupName: 'group' });
await raw.control('DescribeModelPackage', { ModelPackageName: modelPackageArn });
await raw.control('DeleteModelPackage', { ModelPackageName: `${modelPackageArn.replace(/\d+$/, '')}99` });
await raw.control('DescribeTrainingSession', { TrainingSessionName: name });
await raw.control('StopTrainingSession', { TrainingSessionName: 'spare' });
await raw.control('DeleteTrainingSession', { TrainingSessionName: 'spare' });
for (const kind of ['operations', 'sampling-operations']) {
  await raw.send({ method: 'DELETE', path: `/v1/training-sessions/${name}/${kind}/none` });
}
globalThis.fetch = send;
await service.close();

const seen = new Map<string, number>();
const kept = recorded.filter((request) => {
  const { operationConfig = {} } = (request.body ?? {}) as { operationConfig?: object };
  const route = request.path.replace(/[0-9a-f-]{36}/, 'id');
  const kind = [request.method, route, request.headers['x-amz-target'], ...Object.keys(operationConfig)].join(' ');
  const count = (seen.get(kind) ?? 0) + 1;
  seen.set(kind, count);
  return count <= keptOfKind;
});
const text = `[\n${kept.map((request) => withPlaceholders(JSON.stringify(request))).join(',\n')}\n]\n`;
await writeFile(fileURLToPath(new URL('requests.json', import.meta.url)), text);
console.log(`${kept.length} of ${recorded.length} requests, ${text.length} characters`);

/** Ids of this run; the token and name of a client stay. */
function withPlaceholders(request: string): string {
  return request.replace(
    /\/((?:sampling-)?operations)\/[0-9a-f-]{36}/g,
    (_, kind: keyof typeof placeholders) => `/${kind}/${placeholders[kind]}`,
  );
}
