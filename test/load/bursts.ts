/** Many at once: every operation is done once, or its sender was told to come again and came. */
import { passBody, type RawAnswer, type RawKind, type RawServer, sampleBody } from '../support/raw-server.js';
import type { MeasuredServer } from './measured-server.js';

export interface Burst {
  readonly name: string;
  readonly operations: number;
  /** Answers of 429, each of which was sent again after what it asked for. */
  readonly refusals: number;
  readonly seconds: number;
  /** Resident bytes at most, seen once a second and at the end. */
  readonly peakServerBytes: number;
  readonly peakEngineBytes: number;
}

interface BurstPlan {
  readonly name: string;
  readonly sessions: readonly string[];
  readonly kind: RawKind;
  readonly count: number;
  /** How many submissions are under way at once. */
  readonly atOnce: number;
  readonly body: (number: number) => object;
}

const model = 'loopwright-tiny';

/** The bursts of the promise; `scale` 1 is whole, less is for machines that do other things as well. */
export async function bursts(
  server: MeasuredServer,
  scale: number,
  onDone: (burst: Burst) => void = () => undefined,
): Promise<Burst[]> {
  const { raw } = server;
  const some = (count: number) => Math.max(1, Math.round(count * scale));
  const fifty = Array.from({ length: some(50) }, (_, i) => `burst-${i}`);
  const done: Burst[] = [];
  const one = async (plan: BurstPlan) => {
    const outcome = await burst(server, plan);
    done.push(outcome);
    onDone(outcome);
  };

  await raw.createSession('burst', model);
  const sampling = { sessions: ['burst'], kind: 'sampling-operations' } as const;
  const training = { sessions: ['burst'], kind: 'operations' } as const;
  await one({
    ...sampling,
    name: '512 samples at once',
    count: some(512),
    atOnce: 512,
    body: (seed) => sampleBody({ seed, maxTokens: 4 }),
  });
  const half = passOf(500_000);
  await one({
    ...training,
    name: '64 bodies of 500 KB at once',
    count: some(64),
    atOnce: 64,
    body: (number) => ({ ...half, sequenceNumber: number }),
  });
  const before = some(64);
  const large = passOf(3_300_000);
  await one({
    ...training,
    name: '208 bodies of 3.3 MB at once',
    count: some(208),
    atOnce: 208,
    body: (number) => ({ ...large, sequenceNumber: before + number }),
  });
  await raw.control('StopTrainingSession', { TrainingSessionName: 'burst' });

  for (const name of fifty) await raw.createSession(name, model);
  await one({
    name: '50 sessions, a pass each at once',
    sessions: fifty,
    kind: 'operations',
    count: fifty.length,
    atOnce: fifty.length,
    body: () => passBody(1),
  });
  await one({
    name: '10,000 small operations over them',
    sessions: fifty,
    kind: 'sampling-operations',
    count: some(10_000),
    atOnce: 64,
    body: (seed) => sampleBody({ seed }),
  });
  for (const name of fifty) await raw.control('StopTrainingSession', { TrainingSessionName: name });
  return done;
}

/** A forward pass whose body has so many bytes: what the engine computes is small, the rest is a member that nobody reads. */
function passOf(bytes: number): object {
  return { ...passBody(1, { type: 'forward' }), padding: new Array(Math.round(bytes / 8)).fill(1_234_567) };
}

/** @throws when an operation is lost, doubled, fails, or is refused in another way */
async function burst({ raw, memory }: MeasuredServer, plan: BurstPlan): Promise<Burst> {
  const { name, sessions, kind, count, atOnce, body } = plan;
  const usageBefore = await tokensOf(raw, sessions);
  let refusals = 0;
  let [peakServerBytes, peakEngineBytes] = [0, 0];
  const look = async () => {
    const { server, engines } = await memory();
    [peakServerBytes, peakEngineBytes] = [Math.max(peakServerBytes, server), Math.max(peakEngineBytes, engines)];
  };
  const watch = setInterval(() => void look(), 1000);
  const started = performance.now();
  const ids: { readonly session: string; readonly id: string }[] = [];
  let next = 1;
  const submitter = async () => {
    while (next <= count) {
      const number = next++;
      const session = sessions[number % sessions.length]!;
      for (;;) {
        const answer = await raw.submit(session, kind, body(number));
        if (answer.status === 200) {
          ids.push({ session, id: String(answer.body.operationId) });
          break;
        }
        if (answer.status !== 429) throw new Error(`${name}: HTTP ${answer.status} ${JSON.stringify(answer.body)}`);
        refusals += 1;
        await later(answer);
      }
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.min(atOnce, count) }, submitter));
    const results = await Promise.all(ids.map(({ session, id }) => ended(raw, { session, kind, id })));
    const failed = results.filter(({ status }) => status !== 'Completed');
    if (failed.length > 0) throw new Error(`${name}: ${failed.length} failed, such as ${JSON.stringify(failed[0])}`);
  } finally {
    clearInterval(watch);
  }
  if (new Set(ids.map(({ id }) => id)).size !== count)
    throw new Error(`${name}: expected ${count} ids, got ${ids.length}`);
  const seconds = (performance.now() - started) / 1000;
  await look(); // one that took less than a second was not seen yet
  checkTokens(plan, usageBefore, await tokensOf(raw, sessions));
  return { name, operations: count, refusals, seconds, peakServerBytes, peakEngineBytes };
}

interface Tokens {
  readonly prefill: number;
  readonly sample: number;
  readonly training: number;
}

/** What the sessions were billed for is what was submitted, each once. */
function checkTokens({ name, kind, count }: BurstPlan, before: Tokens, after: Tokens): void {
  const promptLength = 3; // of sampleBody and passBody
  const [got, expected] =
    kind === 'operations'
      ? [after.training - before.training, count * promptLength]
      : [after.prefill - before.prefill, count * promptLength];
  if (got !== expected) throw new Error(`${name}: expected ${expected} tokens on the ledger, got ${got}`);
}

async function tokensOf(raw: RawServer, sessions: readonly string[]): Promise<Tokens> {
  const sum = { prefill: 0, sample: 0, training: 0 };
  for (const session of sessions) {
    const usage = (await raw.detail(session)).BillableTokenUsage as Record<string, number>; // true: of every detail
    sum.prefill += usage.PrefillTokenCount ?? 0;
    sum.sample += usage.SampleTokenCount ?? 0;
    sum.training += usage.TrainingTokenCount ?? 0;
  }
  return sum;
}

async function ended(
  raw: RawServer,
  { session, kind, id }: { readonly session: string; readonly kind: RawKind; readonly id: string },
): Promise<Readonly<Record<string, unknown>>> {
  for (;;) {
    const answer = await raw.poll(session, kind, id, 30);
    if (answer.status === 429) await later(answer);
    else if (answer.status !== 200) throw new Error(`HTTP ${answer.status} ${JSON.stringify(answer.body)}`);
    else if (answer.body.status !== 'Pending' && answer.body.status !== 'InProgress') return answer.body;
  }
}

/** Waits as long as the server asks for. @throws when it does not say */
async function later({ headers }: RawAnswer): Promise<void> {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  if (!(seconds >= 1)) throw new Error('429 without Retry-After');
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}
