import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { Answer, Problem } from '../../environments/environment.js';
import { createGrader } from '../grader.js';
import { type HttpRewardOptions, httpReward } from './http-reward.js';

type Records = { id: string; messages: { role: string; content: string }[]; reference_answer: unknown }[];
interface Reply {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
}
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A reward function over a socket, which answers what `reply` says of each request. */
async function standIn(reply: (body: unknown, call: number) => Reply | 'never') {
  const bodies: unknown[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer); // true: no encoding is set
    bodies.push(JSON.parse(Buffer.concat(chunks).toString()));
    headers.push(request.headers);
    const said = reply(bodies.at(-1), bodies.length);
    if (said === 'never') return;
    response.writeHead(said.status ?? 200, { 'content-type': 'application/json', ...said.headers });
    response.end(typeof said.body === 'string' ? said.body : JSON.stringify(said.body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/reward`, bodies, headers }; // true: it listens on a port
}

const answer = (text: string, id = 'p'): Answer<Problem> => ({
  problem: { id, question: 'What is 6 · 7?', answer: '42' },
  text,
  stopReason: 'stop',
});
const scored = (records: unknown) =>
  (records as Records).map(({ id, messages, reference_answer }) => ({
    id,
    aggregate_reward_score: messages.at(-1)?.content === reference_answer ? 1 : -1,
    metrics_list: [
      { name: 'length', value: messages.at(-1)?.content.length, type: 'Metric' },
      { name: 'form', value: 0.5, type: 'Reward' },
    ],
  }));
const quick = { sleep: () => Promise.resolve(), random: () => 0 };
const grading = (options: HttpRewardOptions<Problem>) =>
  createGrader({ components: httpReward({ ...quick, ...options }) });

describe('httpReward', () => {
  it('sends records with the answer last, in one request, and logs the metrics apart', async () => {
    const { url, bodies } = await standIn((records) => ({ body: scored(records) }));
    const grade = grading({ url, metrics: ['length', 'form', 'other'], row: () => ({ metadata: { a: 1 }, id: 'no' }) });
    const grades = await Promise.all([grade(answer('42')), grade(answer('41'))]);
    expect(grades).toMatchObject([
      {
        status: 'ok',
        reward: 1,
        components: [{ score: 1 }, { name: 'http.length', score: 2 }, { score: 0.5 }, { status: 'not_applicable' }],
      },
      { status: 'ok', reward: -1 },
    ]);
    expect(bodies).toEqual([
      ['42', '41'].map((text) => ({
        id: expect.stringMatching(/^p#\d+$/),
        metadata: { a: 1 },
        messages: [
          { role: 'user', content: 'What is 6 · 7?' },
          { role: 'assistant', content: text },
        ],
        reference_answer: '42',
      })),
    ]);
  });

  it.each([
    ['list', (body: unknown) => body],
    ['batch', (body: unknown) => (body as { batch: unknown }).batch],
    ['body', (body: unknown) => JSON.parse((body as { body: string }).body) as unknown],
  ] as const)('speaks both forms of answers, with the records in a %s', async (envelope, recordsOf) => {
    const { url } = await standIn((body, call) => {
      const results = scored(recordsOf(body));
      const forms = [
        results,
        { statusCode: 200, headers: {}, body: JSON.stringify(results) },
        { statusCode: 200, body: results },
      ];
      return { body: forms[call - 1] };
    });
    const grade = grading({ url, envelope });
    for (let form = 0; form < 3; form++) expect(await grade(answer('42'))).toMatchObject({ status: 'ok', reward: 1 });
  });

  it('tells results apart by id, not by place, and splits what is more than a batch', async () => {
    const { url, bodies } = await standIn((records) => ({ body: scored(records).reverse() }));
    const grade = grading({ url, batchSize: 2 });
    const texts = ['42', '1', '42', '2', '3'];
    const grades = await Promise.all(texts.map((text, i) => grade(answer(text, `p${i}`))));
    expect(grades.map((each) => 'reward' in each && each.reward)).toEqual([1, -1, 1, -1, -1]);
    expect(bodies.map((records) => (records as Records).length)).toEqual([2, 2, 1]);
  });

  const first = (records: unknown) => (records as Records)[0]!.id;
  it.each<[string, (records: unknown) => unknown, string]>([
    ['no list', () => ({ ok: true }), 'answer'],
    ['null', () => null, 'answer'],
    ['an error of the runtime', () => ({ errorMessage: 'secret', errorType: 'E' }), 'answer'],
    ['another status', () => ({ statusCode: 500, body: '[]' }), 'statusCode'],
    ['no body', () => ({ statusCode: 200 }), 'body'],
    ['a body that is no JSON', () => ({ statusCode: 200, body: 'secret' }), 'body'],
    ['a missing result', () => [], 'results'],
    ['an unknown id', (records) => [...scored(records), { id: 'x', aggregate_reward_score: 1 }], '[1].id'],
    ['no id', () => [{ aggregate_reward_score: 1 }], '[0].id'],
    ['an id twice', (records) => [...scored(records), ...scored(records)], '[1].id'],
    ['no score', (records) => [{ id: first(records) }], '[0].aggregate_reward_score'],
    [
      'a score as text',
      (records) => [{ id: first(records), aggregate_reward_score: '1' }],
      '[0].aggregate_reward_score',
    ],
    [
      'metrics that are none',
      (records) => [
        { id: first(records), aggregate_reward_score: 1, metrics_list: [{ name: 'a', value: null, type: 'Metric' }] },
      ],
      '[0].metrics_list[0].value',
    ],
  ])('names what is wrong with %s, without a reward and without content', async (_, reply, field) => {
    const { url } = await standIn((records) => ({ body: reply(records) }));
    const grade = await grading({ url })(answer('my secret answer'));
    expect(grade).toMatchObject({ status: 'grader_error', error: { code: 'operation_failed', details: { field } } });
    expect(grade).not.toHaveProperty('reward');
    expect('error' in grade && String(grade.error)).not.toContain('secret');
  });

  it('lets one wrong result fail its own answer only', async () => {
    const { url } = await standIn((records) => ({
      body: scored(records).map((result, i) => (i === 0 ? { ...result, aggregate_reward_score: null } : result)),
    }));
    const grade = grading({ url });
    const grades = await Promise.all([grade(answer('42')), grade(answer('42'))]);
    expect(grades.map(({ status }) => status)).toEqual(['grader_error', 'ok']);
  });

  it('tries again where that can help, as late as it was told', async () => {
    const waits: number[] = [];
    const { url, bodies } = await standIn((records, call) => {
      if (call === 1) return { status: 429, headers: { 'retry-after': '7' }, body: '' };
      return call === 2 ? { status: 503, body: 'down' } : { body: scored(records) };
    });
    const sleep = (ms: number) => {
      waits.push(ms);
      return Promise.resolve();
    };
    expect(await grading({ url, sleep, random: () => 0.5 })(answer('42'))).toMatchObject({ status: 'ok', reward: 1 });
    expect(waits).toEqual([7250, 500]);
    expect(bodies).toHaveLength(3);
  });

  it('gives up after its tries, and at once where trying again cannot help', async () => {
    const { url, bodies } = await standIn(() => ({ status: 500, body: 'my secret' }));
    const grade = await grading({ url, retries: 2 })(answer('42'));
    expect(grade).toMatchObject({ status: 'grader_error', error: { details: { httpStatus: 500 } } });
    expect(bodies).toHaveLength(3);
    const refusing = await standIn(() => ({ status: 403, body: '' }));
    expect(await grading({ url: refusing.url })(answer('42'))).toMatchObject({ status: 'grader_error' });
    expect(refusing.bodies).toHaveLength(1);
  });

  it('is a timeout where nothing comes, and stops when its caller does', async () => {
    const { url } = await standIn(() => 'never');
    const late = await grading({ url, timeoutMs: 30 })(answer('42'));
    expect(late).toMatchObject({ status: 'timeout', error: { code: 'grader_timeout' } });
    expect(late).not.toHaveProperty('reward');
    const abort = new AbortController();
    const stopped = grading({ url })(answer('42'), { signal: abort.signal });
    abort.abort(new Error('enough'));
    expect(await stopped).toMatchObject({ status: 'grader_error', error: { message: 'enough' } });
  });

  it('lets one run end without the others that share its request', async () => {
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { url } = await standIn((records) => ({ body: scored(records) }));
    const grade = grading({
      url,
      fetch: async (input, init) => {
        await held;
        return fetch(input, init);
      },
    });
    const abort = new AbortController();
    const [first, second] = [grade(answer('42'), { signal: abort.signal }), grade(answer('42'))];
    await new Promise((resolve) => setTimeout(resolve, 0)); // the request has begun
    abort.abort(new Error('enough'));
    release();
    expect(await first).toMatchObject({ status: 'grader_error', error: { message: 'enough' } });
    expect(await second).toMatchObject({ status: 'ok', reward: 1 });
  });

  it('asks anew for an answer that is graded anew', async () => {
    const { url } = await standIn((records, call) => ({ body: call === 1 ? [] : scored(records) }));
    const grade = grading({ url });
    const same = answer('42');
    expect(await grade(same)).toMatchObject({ status: 'grader_error' });
    expect(await grade(same)).toMatchObject({ status: 'ok', reward: 1 });
  });

  it('keeps keys out of errors, and does not carry them along a redirect', async () => {
    const other = await standIn(() => ({ body: [] }));
    const { url, headers } = await standIn(() => ({ status: 307, headers: { location: other.url }, body: '' }));
    const grade = await grading({ url, retries: 0, headers: (body) => ({ authorization: `Key ${body.length}` }) })(
      answer('42'),
    );
    expect(headers[0]?.authorization).toMatch(/^Key \d+$/);
    expect(grade).toMatchObject({ status: 'grader_error' });
    expect('error' in grade && JSON.stringify(grade.error)).not.toContain('Key');
    expect(other.bodies).toEqual([]);
  });

  it('refuses at construction what could only fail later', () => {
    const refused = (options: HttpRewardOptions<Problem>) =>
      expect(() => httpReward(options)).toThrow(expect.objectContaining({ code: 'invalid_argument' }));
    const url = 'http://127.0.0.1:1/';
    refused({ url: 'here' });
    refused({ url: 'file:///etc/passwd' });
    refused({ url: 'http://me:secret@127.0.0.1/' });
    refused({ url, batchSize: 0 });
    refused({ url, timeoutMs: 0 });
    refused({ url, retries: -1 });
    refused({ url, concurrency: 0.5 });
  });
});
