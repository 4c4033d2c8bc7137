/** Losses of the caller's own: two passes in order, the surrogate between them, and what goes wrong. */
import { LoopwrightError } from '@loopwright/protocol';
import { expect, test, vi } from 'vitest';
import type { CustomDatum, CustomLoss } from './custom-loss.js';
import type { FakeServer } from './testing/fake-server.js';
import { failure, setUpTraining, until } from './testing/setup.js';

/** The fake server's log-probabilities of a datum are minus its first token. */
function datum(first: number, { length = 2, forwardOnly = false } = {}): CustomDatum {
  const modelInput = Array.from({ length }, (_, t) => first + t);
  return { modelInput, lossFnInputs: { targetTokens: modelInput }, ...(forwardOnly ? { forwardOnly } : {}) };
}

/** Σ lp²/2, whose gradient is lp. */
const squares: CustomLoss = (logprobs) => ({
  loss: logprobs.flat().reduce((sum, lp) => sum + lp ** 2 / 2, 0),
  gradients: logprobs,
  metrics: { 'square/count': logprobs.flat().length },
});

const operations = (server: FakeServer) => server.training.map(({ operation }) => operation.type);

/** Weights of the cross entropy that went out last. */
function sentWeights(server: FakeServer): number[][] {
  const operation = server.training.findLast((request) => request.operation.type === 'forward-backward')?.operation;
  if (operation === undefined || !('data' in operation)) throw new Error('no pass went out');
  expect(operation.loss).toEqual({ name: 'cross_entropy' });
  return operation.data.map(({ weights }) => Array.from(weights?.data ?? []));
}

test('a forward, then a backward of minus the gradient, in the order of the calls', async () => {
  const { server, training } = await setUpTraining();
  const data = [datum(3), datum(5, { length: 3 })];
  const pass = training.forwardBackwardCustom(data, squares);
  const step = training.optimStep();
  expect(pass.state).toBe('queued');
  const output = await pass;
  await step;
  expect(server.training.map(({ sequenceNumber, operation }) => [sequenceNumber, operation.type])).toEqual([
    [1, 'forward'],
    [2, 'forward-backward'],
    [3, 'optim-step'],
  ]);
  expect(sentWeights(server)).toEqual([
    [3, 3],
    [5, 5, 5],
  ]);
  expect(output).toEqual({
    loss: 46.5,
    outputs: [{ logprobs: [-3, -3] }, { logprobs: [-5, -5, -5] }],
    metrics: { 'square/count': 5, 'loss/sum': 46.5 },
    trainingTokens: 5,
  });
});

test('nothing that is called meanwhile comes between the two passes', async () => {
  const { server, training } = await setUpTraining();
  server.onTraining = ({ operation }) => (operation.type === 'forward' ? 'hold' : undefined);
  const pass = training.forwardBackwardCustom([datum(1)], squares);
  await until(() => server.training.length === 1);
  const step = training.optimStep();
  const saved = training.saveState();
  await until(() => step.waitingFor !== undefined);
  expect(operations(server)).toEqual(['forward']);
  server.finish();
  await Promise.all([pass, step, saved]);
  expect(operations(server)).toEqual(['forward', 'forward-backward', 'optim-step', 'save-state']);
});

test('the function is called once, with the data as given, though answers are lost', async () => {
  const { server, training } = await setUpTraining();
  server.faults.push(
    { when: ({ body }) => body.includes('"forward"'), fault: 'lose-answer' },
    { when: ({ body }) => body.includes('"forwardBackward"'), fault: 'lose-answer' },
  );
  const data = [{ ...datum(1), pair: 7 }];
  const loss = vi.fn((logprobs: readonly (readonly number[])[], given: readonly CustomDatum[]) => {
    expect(given).toBe(data);
    return squares(logprobs, given);
  });
  await training.forwardBackwardCustom(data, loss);
  expect(loss).toHaveBeenCalledTimes(1);
  expect(operations(server)).toEqual(['forward', 'forward-backward']);
});

test('targets of several columns keep their shape', async () => {
  const { server, training } = await setUpTraining();
  const wide = {
    modelInput: [4, 5],
    lossFnInputs: {
      targetTokens: [
        [1, 2],
        [3, 4],
      ],
      temperature: [2, 2],
    },
  };
  await training.forwardBackwardCustom([wide], () => ({ loss: 0, gradients: [[1, 2, 3, 4]] }));
  const operation = server.training[1]?.operation;
  if (operation?.type !== 'forward-backward') throw new Error('no second pass');
  expect(operation.data[0]?.weights).toMatchObject({ shape: [2, 2], data: Float32Array.of(-1, -2, -3, -4) });
  expect(operation.data[0]?.temperature?.data).toEqual(Float32Array.of(2, 2));
});

test('datums that are only looked at get no second pass', async () => {
  const { server, training } = await setUpTraining();
  const data = [datum(1), datum(2, { forwardOnly: true }), datum(3)];
  const loss: CustomLoss = (logprobs) => ({ loss: 1, gradients: logprobs.map((row, i) => (i === 1 ? [] : row)) });
  const { outputs } = await training.forwardBackwardCustom(data, loss);
  expect(outputs).toHaveLength(3);
  expect(sentWeights(server)).toEqual([
    [1, 1],
    [3, 3],
  ]);
  expect((await failure(training.forwardBackwardCustom(data, squares))).message).toMatch(
    /^squares: gradients\[1\]: expected no gradient, since the datum is forwardOnly/,
  );
  expect(() => training.forwardBackwardCustom([datum(2, { forwardOnly: true })], squares)).toThrow(
    'expected a datum that is not forwardOnly',
  );
});

test('a large batch goes out in parts, all of them forward before the first goes back', async () => {
  const { server, training } = await setUpTraining();
  const data = Array.from({ length: 1025 }, (_, i) => datum(i, { length: 1 }));
  const { outputs } = await training.forwardBackwardCustom(data, squares);
  expect(operations(server)).toEqual(['forward', 'forward', 'forward-backward', 'forward-backward']);
  expect(outputs.map(({ logprobs }) => logprobs[0])).toEqual(data.map((_, i) => 0 - i));
  expect(sentWeights(server)).toEqual([[1024]]);
});

const wrongFunctions: readonly [string, () => unknown, RegExp][] = [
  ['a loss that is not finite', () => ({ loss: Number.NaN, gradients: [[0, 0]] }), /^mine: loss: .* got NaN/],
  ['no result', () => undefined, /^mine: result: expected an object of loss and gradients, got undefined/],
  ['a promise', async () => ({ loss: 1, gradients: [[0, 0]] }), /^mine: result: .* got a promise/],
  ['no gradients', () => ({ loss: 1 }), /^mine: gradients: expected 1 lists, one per datum, got undefined/],
  ['too few lists', () => ({ loss: 1, gradients: [] }), /^mine: gradients: expected 1 lists, one per datum, got 0/],
  ['a short list', () => ({ loss: 1, gradients: [[0]] }), /^mine: gradients\[0\]: expected 2 numbers, .* got 1/],
  ['no list', () => ({ loss: 1, gradients: [null] }), /^mine: gradients\[0\]: expected 2 numbers, .* got null/],
  ['NaN', () => ({ loss: 1, gradients: [[0, Number.NaN]] }), /^mine: gradients\[0\]\[1\]: .* got NaN/],
  ['1e39', () => ({ loss: 1, gradients: [[0, 1e39]] }), /^mine: gradients\[0\]\[1\]: .*within float32, got 1e\+39/],
];

test.each(wrongFunctions)('%s is an error with the name of the function', async (_, wrong, message) => {
  const { server, training } = await setUpTraining();
  const mine = Object.defineProperty(wrong, 'name', { value: 'mine' }) as CustomLoss; // as callers in JavaScript write it
  const [error, step] = await Promise.all([
    failure(training.forwardBackwardCustom([datum(1)], mine)),
    failure(training.optimStep()),
  ]);
  expect(error.code).toBe('loss_function_failed');
  expect(error.message).toMatch(message);
  expect(step.code).toBe('gradient_incomplete');
  expect(step.cause).toBe(error);
  expect(operations(server)).toEqual(['forward']);
  // Nothing is left: the next pass and step go as ever.
  await Promise.all([training.forwardBackwardCustom([datum(1)], squares), training.optimStep()]);
  await training.close();
});

test('what the function throws is the cause', async () => {
  const { training } = await setUpTraining();
  const reason = new TypeError('oh');
  const error = await failure(
    training.forwardBackwardCustom([datum(1)], function broken() {
      throw reason;
    }),
  );
  expect(error).toMatchObject({ code: 'loss_function_failed', cause: reason });
  expect(error.message).toMatch(/^broken: threw/);
  const own = new LoopwrightError({ code: 'invalid_argument', message: 'data: expected pairs' });
  expect(
    await failure(
      training.forwardBackwardCustom([datum(1)], () => {
        throw own;
      }),
    ),
  ).toBe(own);
});

test('wrong data throws at the call and names the field', async () => {
  const { server, training } = await setUpTraining();
  expect(() => training.forwardBackwardCustom([], squares)).toThrow(/^data: expected an array of one or more datums/);
  const noTargets = { modelInput: [1] } as unknown as CustomDatum; // as callers in JavaScript may write it
  expect(() => training.forwardBackwardCustom([noTargets], squares)).toThrow(/^data\[0\]\.lossFnInputs: /);
  const short = { modelInput: [1, 2], lossFnInputs: { targetTokens: [1] } };
  expect(() => training.forwardBackwardCustom([datum(1), short], squares)).toThrow(
    /^data\[1\]\.lossFnInputs\.targetTokens: /,
  );
  expect(() => training.forwardBackwardCustom([datum(1)], 'dpo' as unknown as CustomLoss)).toThrow(
    'loss: expected a function of logprobs, got string',
  );
  await training.optimStep();
  expect(server.training).toHaveLength(1);
});

test('a forward pass that fails or is refused stops the backward, and the step behind it', async () => {
  const { server, training } = await setUpTraining();
  const loss = vi.fn(squares);
  server.onTraining = ({ operation }) =>
    operation.type === 'forward' ? new LoopwrightError({ code: 'out_of_memory', message: 'no room' }) : undefined;
  const failed = training.forwardBackwardCustom([datum(1)], loss);
  const step = training.optimStep();
  expect((await failure(failed)).code).toBe('out_of_memory');
  expect((await failure(step)).code).toBe('gradient_incomplete');

  server.faults.push({
    when: ({ body }) => body.includes('"forward"'),
    fault: new LoopwrightError({ code: 'payload_too_large', message: 'too large' }),
  });
  const refused = training.forwardBackwardCustom([datum(1)], loss);
  const second = training.optimStep();
  expect((await failure(refused)).code).toBe('payload_too_large');
  expect((await failure(second)).code).toBe('gradient_incomplete');
  expect(loss).not.toHaveBeenCalled();
  expect(operations(server)).toEqual(['forward']);
});

test('a cancel between the passes ends both, and what waits behind goes on', async () => {
  const { server, training } = await setUpTraining();
  server.onTraining = ({ operation }) => (operation.type === 'forward' ? 'hold' : undefined);
  const loss = vi.fn(squares);
  const pass = training.forwardBackwardCustom([datum(1)], loss);
  await until(() => server.training.length === 1);
  const saved = training.saveState();
  pass.cancel();
  expect((await failure(pass)).code).toBe('cancelled');
  await saved;
  expect(loss).not.toHaveBeenCalled();
  expect(operations(server)).toEqual(['forward', 'save-state']);
  await training.close();
});

test('stopping the session while the first pass runs skips the second', async () => {
  const { server, training } = await setUpTraining();
  server.onTraining = () => 'hold';
  const pass = training.forwardBackwardCustom([datum(1)], squares);
  await until(() => server.training.length === 1);
  await training.stop();
  expect((await failure(pass)).code).toBe('operation_skipped');
  expect(operations(server)).toEqual(['forward']);
  await training.close();
});

test('nobody has to await it: the failure comes out at close', async () => {
  const { training } = await setUpTraining();
  void training.forwardBackwardCustom([datum(1)], () => ({ loss: 1, gradients: [[1]] }));
  expect((await failure(training.close())).details).toMatchObject({
    unawaited: [{ operation: 'forward-backward', code: 'loss_function_failed' }],
  });
});
