/** Rewards of a function behind an address, in the formats that managed trainers use. */
import { complaint, LoopwrightError } from '@loopwright/protocol';
import type { ChatMessage } from '@loopwright/text';
import type { Answer, Problem } from '../../environments/environment.js';
import type { Component } from '../component.js';
import { type EndpointOptions, jsonEndpoint } from './post-json.js';
import { type RewardResult, readRewards } from './reward-results.js';

export interface HttpRewardOptions<P extends Problem> extends EndpointOptions {
  /** Default `http`. */
  readonly name?: string;
  /** Default 1. */
  readonly weight?: number;
  /**
   * Names in the function's `metrics_list`, each logged as a component `<name>.<metric>` of weight 0: the function's score holds
   * them already. Default none. A metric that a result hasn't doesn't apply to it.
   */
  readonly metrics?: readonly string[];
  /** What stands around the records: default `list`, nothing. `batch`: `{ batch: […] }`. `body`: `{ body: "<JSON text>" }`. */
  readonly envelope?: 'list' | 'batch' | 'body';
  /** Records of a request at most; default 32. */
  readonly batchSize?: number;
  /** What the model was asked; default its question as one message of the user. */
  readonly messages?: (problem: P) => readonly ChatMessage[];
  /** Default the problem's `answer`. */
  readonly referenceAnswer?: (problem: P) => unknown;
  /** Further columns of a record, such as `metadata`; `id`, `messages` and `reference_answer` stay as they are. */
  readonly row?: (problem: P) => Readonly<Record<string, unknown>>;
}

interface Waiting {
  readonly record: Readonly<Record<string, unknown>> & { readonly id: string };
  readonly signal: AbortSignal;
  readonly resolve: (result: RewardResult) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * A component whose score is the function's `aggregate_reward_score`, and one for each of `metrics`. Answers that are graded in one go
 * share requests.
 *
 * Sent: records `{ id, messages, reference_answer, … }`, whose last message is the answer, by the assistant; the id begins with the
 * problem's and is of this answer alone. Taken: a list of `{ id, aggregate_reward_score, metrics_list? }`, or that as body of
 * `{ statusCode: 200, body }`. Whatever else comes is a `grader_error` that names the field, an answer too late a `timeout`.
 *
 * @throws `invalid_argument` for an option out of range
 */
export function httpReward<P extends Problem = Problem>(options: HttpRewardOptions<P>): readonly Component<P>[] {
  const { name = 'http', weight = 1, metrics = [], batchSize = 32, envelope = 'list' } = options;
  if (!(Number.isInteger(batchSize) && batchSize > 0))
    throw complaint({ field: 'batchSize', expected: 'a whole number from 1', got: String(batchSize) });
  if (!['list', 'batch', 'body'].includes(envelope))
    throw complaint({ field: 'envelope', expected: 'list, batch or body', got: envelope });
  const endpoint = jsonEndpoint(options);
  const shared = new WeakMap<Answer<P>, Promise<RewardResult>>();
  let queue: Waiting[] = [];
  let sent = 0;

  const flush = async (): Promise<void> => {
    const batch = queue;
    queue = [];
    const starts = Array.from({ length: Math.ceil(batch.length / batchSize) }, (_, i) => i * batchSize);
    await Promise.all(starts.map((at) => ask(batch.slice(at, at + batchSize))));
  };

  const ask = async (batch: readonly Waiting[]): Promise<void> => {
    const { signal, release } = whenAllAborted(batch);
    try {
      const records = batch.map(({ record }) => record);
      const answer = await endpoint.post(enveloped(records, envelope), name, signal);
      const results = readRewards(
        answer,
        records.map(({ id }) => id),
      );
      for (const { record, resolve, reject } of batch) {
        const result = results.get(record.id);
        if (result === undefined || LoopwrightError.isInstance(result)) reject(result);
        else resolve(result);
      }
    } catch (error) {
      for (const { reject } of batch) reject(error);
    } finally {
      release();
    }
  };

  const resultOf = (answer: Answer<P>, signal: AbortSignal): Promise<RewardResult> => {
    const known = shared.get(answer);
    if (known !== undefined) return known;
    const result = new Promise<RewardResult>((resolve, reject) => {
      sent += 1;
      queue.push({ record: recordOf(answer, sent, options), signal, resolve, reject });
      // Those who are graded in the same go queue up before this.
      if (queue.length === 1) setTimeout(() => void flush(), 0);
    });
    shared.set(answer, result);
    // Graded once more, it is asked for once more. Each who waits hears of a failure by its own await.
    result.catch(() => {}).finally(() => shared.delete(answer));
    return result;
  };

  const timeoutMs = Number.POSITIVE_INFINITY; // a wait for a place has no limit, and attempts have theirs
  return [
    { name, weight, timeoutMs, score: async (answer, { signal }) => (await resultOf(answer, signal)).score },
    ...metrics.map(
      (metric): Component<P> => ({
        ...{ name: `${name}.${metric}`, weight: 0, timeoutMs },
        score: async (answer, { signal }) =>
          (await resultOf(answer, signal)).metrics.find((each) => each.name === metric)?.value ?? null,
      }),
    ),
  ];
}

/** A request is given up when nobody waits for it any more: one run that ends takes nothing from another. */
function whenAllAborted(batch: readonly Waiting[]): { readonly signal: AbortSignal; readonly release: () => void } {
  const controller = new AbortController();
  const look = (): void => {
    if (batch.every(({ signal }) => signal.aborted)) controller.abort(batch[0]?.signal.reason);
  };
  for (const { signal } of batch) signal.addEventListener('abort', look, { once: true });
  look();
  const release = (): void => {
    for (const { signal } of batch) signal.removeEventListener('abort', look);
  };
  return { signal: controller.signal, release };
}

function recordOf<P extends Problem>(
  { problem, text }: Answer<P>,
  number: number,
  { messages, referenceAnswer, row }: HttpRewardOptions<P>,
): Waiting['record'] {
  const asked = messages?.(problem) ?? [{ role: 'user', content: problem.question }];
  return {
    ...row?.(problem),
    id: `${problem.id}#${number}`,
    messages: [...asked, { role: 'assistant', content: text }],
    reference_answer: referenceAnswer === undefined ? problem.answer : referenceAnswer(problem),
  };
}

function enveloped(records: readonly unknown[], envelope: 'list' | 'batch' | 'body'): unknown {
  if (envelope === 'batch') return { batch: records };
  return envelope === 'body' ? { body: JSON.stringify(records) } : records;
}
