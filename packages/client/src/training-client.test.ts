/** What a training loop relies on: order, results, numbers, cancels, endings. */
import { LoopwrightError } from '@loopwright/protocol';
import { expect, test } from 'vitest';
import { OperationFuture } from './operation-future.js';
import { datum, failure, rlDatum, setUpTraining, until } from './testing/setup.js';

test('calls return futures at once and go out in call order with numbers from 1', async () => {
  const { server, training } = await setUpTraining();
  const pass = training.forwardBackward([datum()], 'cross_entropy');
  const update = training.optimStep();
  const saved = training.saveState({ description: 'adder' });
  expect(pass).toBeInstanceOf(OperationFuture);
  expect(pass).not.toBeInstanceOf(Promise);
  expect(server.training).toEqual([]);
  expect(pass.state).toBe('queued');

  const [output, stepped, { modelPackageArn }] = await Promise.all([pass, update, saved]);
  expect(server.training.map(({ sequenceNumber, operation }) => [sequenceNumber, operation.type])).toEqual([
    [1, 'forward-backward'],
    [2, 'optim-step'],
    [3, 'save-state'],
  ]);
  expect(output).toEqual({
    outputs: [{ logprobs: [-1, -1], loss: 1 }],
    metrics: { 'ratio/mean': 1, loss: 1, global_token_num: 2, 'loss/sum': 1, 'loss/mean': 1 },
    trainingTokens: 2,
  });
  expect(stepped.metrics).toMatchObject({ 'optim/step': 1, 'optim/grad_norm': 2, 'optim/lr': 1e-4 });
  expect(modelPackageArn).toBe('arn:aws:sagemaker:self-hosted-1:000000000000:model-package/sagemaker-default/1');
  expect(training.currentSequenceNumber).toBe(3);
  expect(pass.state).toBe('completed');
});

test('a step carries the stated defaults, a loss those of the wire', async () => {
  const { server, training } = await setUpTraining();
  await training.forward([rlDatum()], 'ppo', { clipHighThreshold: 1.5 });
  await training.optimStep({ learningRate: 1e-3, gradClipNorm: 1 });
  expect(server.training.map(({ operation }) => operation)).toMatchObject([
    { type: 'forward', loss: { name: 'ppo', clipLowThreshold: 0.8, clipHighThreshold: 1.5 } },
    {
      adam: {
        learningRate: 1e-3,
        beta1: 0.9,
        beta2: 0.999,
        eps: 1e-8,
        weightDecay: 0.01,
        gradClipNorm: 1,
        loraPlusLrRatio: 1,
      },
    },
  ]);
});

test('a batch above 1024 datums goes out in consecutive parts and comes back as one', async () => {
  const { server, training } = await setUpTraining();
  const data = Array.from({ length: 2049 }, (_, index) => datum(index));
  const pass = training.forwardBackward(data, 'cross_entropy');
  const update = training.optimStep();
  const { outputs, metrics, trainingTokens } = await pass;
  await update;
  expect(
    server.training.map(({ operation }) => ('data' in operation ? operation.data.length : operation.type)),
  ).toEqual([1024, 1024, 1, 'optim-step']);
  expect(outputs.map(({ loss }) => loss)).toEqual(data.map((_, index) => index));
  expect(trainingTokens).toBe(4098);
  expect(metrics.global_token_num).toBe(4098);
  expect(metrics['loss/sum']).toBe((2048 * 2049) / 2);
  expect(metrics['ratio/mean']).toBeCloseTo((1 * 1024 + 2 * 1024 + 3) / 2049, 12);
});

test('wrong arguments throw at the call, name the field, and use no number up', async () => {
  const { server, training } = await setUpTraining();
  const short = { modelInput: [1, 2], lossFnInputs: { targetTokens: [2, 3], weights: [1] } };
  expect(() => training.forwardBackward([datum(), short], 'cross_entropy')).toThrow(
    /^data\[1\]\.lossFnInputs\.weights: expected 2 values/,
  );
  expect(() => training.forwardBackward([], 'cross_entropy')).toThrow(/^data: expected an array of one or more datums/);
  expect(() => training.optimStep({ learningRate: 1 })).toThrow(
    /^options\.learningRate: expected a number above 0 and at most 0\.01/,
  );
  expect(() => training.loadState('latest')).toThrow(/^modelPackageArn: /);
  expect(() => training.saveState({ description: 'd'.repeat(1025) })).toThrow(/^options\.description: /);
  expect(() => training.saveWeightsForSampler({ ttlSeconds: 0 })).toThrow(/^options\.ttlSeconds: /);
  await training.optimStep();
  expect(server.training).toHaveLength(1);
});

test('a submission that the server refuses does not block those behind it', async () => {
  const { server, training } = await setUpTraining();
  server.faults.push({
    when: ({ body }) => body.includes('"forward"'),
    fault: new LoopwrightError({ code: 'payload_too_large', message: 'too large' }), // the number is not counted
  });
  const refused = training.forward([datum()], 'cross_entropy');
  const step = training.optimStep();
  expect((await failure(refused)).code).toBe('payload_too_large');
  await step;
  expect(server.training.map(({ sequenceNumber }) => sequenceNumber)).toEqual([1]);
});

test('a number that the server counted although its answer was lost is left to it', async () => {
  const { server, training } = await setUpTraining();
  // Every answer is lost until the client gives up; the operation itself was accepted under number 1.
  for (let i = 0; i < 1000; i++)
    server.faults.push({ when: ({ body }) => body.includes('"forward"'), fault: 'lose-answer' });
  expect((await failure(training.forward([datum()], 'cross_entropy'))).code).toBe('connection_lost');
  expect(server.training).toHaveLength(1);
  server.faults.length = 0;
  await training.optimStep();
  expect(server.training.map(({ sequenceNumber, operation }) => [sequenceNumber, operation.type])).toEqual([
    [1, 'forward'],
    [2, 'optim-step'],
  ]);
});

test('a step behind a forwardBackward that was refused fails instead of stepping without its gradient', async () => {
  const { server, training } = await setUpTraining();
  server.faults.push({
    when: ({ body }) => body.includes('"forwardBackward"'),
    fault: new LoopwrightError({ code: 'payload_too_large', message: 'too large' }),
  });
  const pass = training.forwardBackward([datum()], 'cross_entropy');
  const step = training.optimStep();
  const [first, second] = await Promise.all([failure(pass), failure(step)]);
  expect(first.code).toBe('payload_too_large');
  expect(second.code).toBe('gradient_incomplete');
  expect(second.cause).toBe(first);
  expect(server.training).toEqual([]);
  await training.optimStep(); // told once
});

test('parts behind a refused part are not sent', async () => {
  const { server, training } = await setUpTraining();
  server.faults.push({
    when: ({ path }) => path.endsWith('/operations'),
    fault: new LoopwrightError({ code: 'payload_too_large', message: 'too large' }),
  });
  const pass = training.forwardBackward(new Array(1025).fill(datum()), 'cross_entropy');
  expect((await failure(pass)).code).toBe('payload_too_large');
  await training.saveState();
  expect(server.training.map(({ operation }) => operation.type)).toEqual(['save-state']);
});

test('what is cancelled before it was submitted is never sent and leaves no gap', async () => {
  const { server, training } = await setUpTraining();
  const first = training.forward([datum()], 'cross_entropy');
  const second = training.optimStep();
  const third = training.saveState();
  second.cancel();
  expect(second.state).toBe('cancelled');
  expect((await failure(second)).code).toBe('cancelled');
  await Promise.all([first, third]);
  expect(server.training.map(({ sequenceNumber, operation }) => [sequenceNumber, operation.type])).toEqual([
    [1, 'forward'],
    [2, 'save-state'],
  ]);
});

test('what is cancelled after that is ended by the server', async () => {
  const { server, training } = await setUpTraining();
  server.onTraining = () => 'hold';
  const pass = training.forwardBackward([datum()], 'cross_entropy');
  await until(() => pass.state === 'submitted');
  pass.cancel();
  expect((await failure(pass)).code).toBe('cancelled');
  expect(pass.state).toBe('cancelled');
  expect(server.requests(`/operations/${pass.operationId}`).map(({ method }) => method)).toContain('DELETE');
});

test('an abort signal cancels, also one that was aborted before the call', async () => {
  const { server, training } = await setUpTraining();
  server.onTraining = () => 'hold';
  const controller = new AbortController();
  const pass = training.forward([datum()], 'cross_entropy', {}, { signal: controller.signal });
  await until(() => pass.state === 'submitted');
  controller.abort();
  expect((await failure(pass)).code).toBe('cancelled');
  expect((await failure(training.optimStep({ signal: AbortSignal.abort() }))).code).toBe('cancelled');
  expect(server.training).toHaveLength(1);
});

test('an operation that failed on the server rejects with the error of the server', async () => {
  const { server, training } = await setUpTraining();
  server.onTraining = () =>
    new LoopwrightError({ code: 'out_of_memory', message: 'no room', details: { expected: '1 GB' } });
  const error = await failure(training.forwardBackward([datum()], 'cross_entropy'));
  expect(LoopwrightError.isInstance(error)).toBe(true);
  expect(error).toMatchObject({ code: 'out_of_memory', message: 'no room', details: { expected: '1 GB' } });
});

test('a future tells why its operation waits', async () => {
  const { server, training } = await setUpTraining();
  server.pendingAnswers = 1;
  server.onTraining = () => 'hold';
  const pass = training.forward([datum()], 'cross_entropy');
  await until(() => pass.waitingFor === 'operation 1 (forward-backward)');
  expect(pass.state).toBe('submitted');
  server.finish();
  await pass;
  expect(pass.waitingFor).toBeUndefined();
});

test('a wait goes on for as many polls as it takes, each held for at most 50 s', async () => {
  const { server, clock, training } = await setUpTraining();
  server.pendingAnswers = 500;
  const pass = await training.forward([datum()], 'cross_entropy');
  expect(pass.outputs).toHaveLength(1);
  const polls = server.requests('/operations/');
  expect(polls).toHaveLength(501);
  const holds = polls.map(({ headers }) => Number(headers.get('x-loopwright-wait-seconds')));
  expect(Math.min(...holds)).toBeGreaterThan(0);
  expect(Math.max(...holds)).toBeLessThanOrEqual(50);
  // A server that does not hold is not hammered.
  expect(Math.max(...clock.sleeps)).toBe(2000);
});

test('saved weights for a sampler expire, saved states do not, and the sampler is bound to its version', async () => {
  const { server, training } = await setUpTraining();
  const sampler = await training.saveWeightsAndGetSamplingClient();
  await training.saveState();
  expect(server.training.map(({ operation }) => operation)).toEqual([
    { type: 'save-weights', merge: false, description: '', ttlSeconds: 14_400 },
    { type: 'save-state', description: '' },
  ]);
  await sampler.sample([5], { maxTokens: 4 });
  expect(server.sampling).toMatchObject([{ weights: { type: 'version', id: 'sagemaker-default/1' } }]);
  expect(training.getLatestModelPackage('weights')).toBe(sampler.modelPackageArn);
  expect(training.getLatestModelPackage('state')).toMatch(/\/2$/);
});

test('closing waits for everything that was called, then stops the session, once', async () => {
  const { server, training } = await setUpTraining();
  {
    await using client = training;
    void client.forwardBackward([datum()], 'cross_entropy');
    void client.saveState();
  }
  expect(server.training).toHaveLength(2);
  expect(server.only.status).toBe('Stopped');
  await training.close();
  expect(server.requests('SageMaker.StopTrainingSession')).toHaveLength(1);
  expect(() => training.optimStep()).toThrow(expect.objectContaining({ code: 'disposed' }));
});

test('stopping skips what waits and refuses what comes', async () => {
  const { server, training } = await setUpTraining();
  server.onTraining = () => 'hold';
  const running = training.forward([datum()], 'cross_entropy');
  await until(() => running.state === 'submitted');
  const queued = training.optimStep();
  await training.stop();
  expect((await failure(running)).code).toBe('operation_skipped');
  expect((await failure(queued)).code).toBe('operation_skipped');
  expect(() => training.optimStep()).toThrow(expect.objectContaining({ code: 'disposed' }));
});

test('a session that ended on the server refuses further operations with its code', async () => {
  const { server, training } = await setUpTraining();
  server.only.status = 'Stopped';
  expect((await failure(training.optimStep())).code).toBe('session_not_active');
});

test('one client names itself in every training submission, another by another name', async () => {
  const { server, service, training } = await setUpTraining();
  const other = await service.createLoraTrainingClient({ baseModel: 'tiny' });
  await training.optimStep();
  await training.optimStep();
  await other.optimStep();
  const trainers = server
    .requests('/operations')
    .flatMap(({ method, headers }) => (method === 'POST' ? headers.get('x-loopwright-trainer') : []));
  expect(trainers[0]).toBe(trainers[1]);
  expect(trainers[0]).not.toBe(trainers[2]);
});
