/** The ledger is the sum of what completed, whatever was repeated, cancelled, killed or restarted on the way. */
import { join } from 'node:path';
import { LoopwrightError } from '@loopwright/protocol';
import { FakeEngine } from '@loopwright/testkit';
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { openDatabase } from '../store/open-database.js';
import { pass, step } from '../testing/operations.js';
import { type Answer, openTestServer, type TestServer } from '../testing/test-server.js';

type Work =
  | { readonly kind: 'pass'; readonly length: number; readonly forward: boolean }
  | { readonly kind: 'step' }
  | { readonly kind: 'sample'; readonly length: number; readonly count: number };

/** One submission, how often it comes again, and what happens before the next. */
interface Action {
  readonly work: Work;
  readonly repeats: number;
  readonly next: 'nothing' | 'wait' | 'cancel' | 'fail' | 'crash' | 'restart';
}

/** Prompt, sampled and trained tokens. */
type Price = readonly [prefill: number, sample: number, training: number];

const sampledTokens = 4;
const length = fc.integer({ min: 1, max: 9 });
const work: fc.Arbitrary<Work> = fc.oneof(
  fc.record({ kind: fc.constant('pass' as const), length, forward: fc.boolean() }),
  fc.record({ kind: fc.constant('step' as const) }),
  fc.record({ kind: fc.constant('sample' as const), length, count: fc.integer({ min: 1, max: 4 }) }),
);
const actions: fc.Arbitrary<Action[]> = fc.array(
  fc.record({
    work,
    repeats: fc.integer({ min: 0, max: 2 }),
    next: fc.constantFrom('nothing', 'wait', 'cancel', 'fail', 'crash', 'restart'),
  }),
  { minLength: 1, maxLength: 12 },
);

it('holds for random operations under repetitions, failures, cancels, crashes and restarts', async () => {
  await fc.assert(
    fc.asyncProperty(actions, async (sequence) => {
      let server = await openTestServer();
      try {
        await server.createSession('s');
        const prices = new Map<string, Price>();
        let number = 0;
        for (const [index, { work, repeats, next }] of sequence.entries()) {
          if (next === 'fail') failNext(server.engine, work);
          if (work.kind !== 'sample') number += 1;
          const answers: Answer[] = [];
          for (let time = 0; time <= repeats; time++)
            answers.push(await submit(server, work, number, `token-${index}`));
          const [id, ...others] = new Set(answers.map(({ body }) => body.operationId));
          // A failure that hits a session while it is made anew ends it.
          if (answers[0]!.body.code === 'session_not_active') break;
          expect(others).toEqual([]);
          if (typeof id !== 'string') throw new Error(JSON.stringify(answers[0]!.body));
          prices.set(id, priceOf(work));
          const route = work.kind === 'sample' ? 'sampling-operations' : 'operations';
          if (next === 'wait') await server.result('s', id, route);
          if (next === 'cancel') await server.request('DELETE', `/v1/training-sessions/s/${route}/${id}`);
          if (next === 'crash') server.engine.crash();
          if (next === 'restart') server = await restarted(server, index);
        }
        await everythingEnded(server);
        await checkLedger(server, prices);
      } finally {
        await server.close();
      }
    }),
    { numRuns: 15 },
  );
}, 120_000);

function failNext(engine: FakeEngine, { kind }: Work): void {
  const method = ({ pass: 'pass', step: 'optimStep', sample: 'sample' } as const)[kind];
  engine.failNext(method, new LoopwrightError({ code: 'out_of_memory', message: 'no memory' }));
}

function submit(server: TestServer, work: Work, number: number, token: string): Promise<Answer> {
  const tokens = Array.from({ length: work.kind === 'step' ? 0 : work.length }, (_, index) => index + 1);
  switch (work.kind) {
    case 'pass':
      return server.submit('s', number, pass(tokens, work.forward ? 'forward' : 'forward-backward'), token);
    case 'step':
      return server.submit('s', number, step(), token);
    case 'sample': {
      const prompt = { chunks: [{ type: 'encoded_text', tokens }] };
      const samplingParams = { maxTokens: sampledTokens };
      return server.submitSample('s', { prompt, numSamples: work.count, samplingParams }, token);
    }
    default:
      return work satisfies never;
  }
}

function priceOf(work: Work): Price {
  if (work.kind === 'step') return [0, 0, 0];
  return work.kind === 'pass' ? [0, 0, work.length] : [work.length, work.count * sampledTokens, 0];
}

async function restarted(server: TestServer, incarnation: number): Promise<TestServer> {
  await server.close();
  const models = [{ id: 'fake-model', directory: server.modelDir }];
  const engine = new FakeEngine({ incarnation: `after ${incarnation}` });
  return openTestServer({ dataDir: server.dataDir, models, engine });
}

interface Row {
  readonly id: string;
  readonly status: string;
  readonly price: Price | undefined;
}

async function rows(server: TestServer): Promise<Row[]> {
  const database = openDatabase(join(server.dataDir, 'loopwright.db'));
  try {
    const found = await database
      .selectFrom('operations')
      .leftJoin('ledger', 'ledger.operation_id', 'operations.id')
      .select(['operations.id', 'status', 'prefill_tokens', 'sample_tokens', 'training_tokens'])
      .execute();
    return found.map(({ id, status, ...tokens }) => {
      const { prefill_tokens: prefill, sample_tokens: sample, training_tokens: training } = tokens;
      const price = prefill === null ? undefined : ([prefill, sample ?? 0, training ?? 0] as const);
      return { id, status, price };
    });
  } finally {
    await database.destroy();
  }
}

async function everythingEnded(server: TestServer): Promise<void> {
  for (const { id } of await rows(server)) {
    for (const route of ['operations', 'sampling-operations'] as const) {
      await server.request('GET', `/v1/training-sessions/s/${route}/${id}`, undefined, {
        'x-loopwright-wait-seconds': '20',
      });
    }
  }
}

async function checkLedger(server: TestServer, prices: ReadonlyMap<string, Price>): Promise<void> {
  const ended = await rows(server);
  expect(ended.map(({ id }) => id).sort()).toEqual([...prices.keys()].sort());
  const sum = [0, 0, 0];
  for (const { id, status, price } of ended) {
    expect(['Completed', 'Failed', 'Skipped']).toContain(status);
    const due = status === 'Completed' ? prices.get(id)! : [0, 0, 0];
    expect(price ?? [0, 0, 0]).toEqual(due);
    due.forEach((tokens, kind) => {
      sum[kind]! += tokens;
    });
  }
  const [PrefillTokenCount, SampleTokenCount, TrainingTokenCount] = sum;
  const { BillableTokenUsage } = await server.detail('s');
  expect(BillableTokenUsage).toEqual({ PrefillTokenCount, SampleTokenCount, TrainingTokenCount });
}
