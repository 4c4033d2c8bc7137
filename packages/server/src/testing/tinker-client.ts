/** The calls of a Tinker client that the tests make, in JSON. */
import { type Answer, type Body, openTestServer, type TestServer, type TestServerOptions } from './test-server.js';

export interface TinkerClient {
  readonly server: TestServer;
  readonly session: string;
  /** A path without its prefix. */
  call(path: string, body?: unknown, method?: string): Promise<Answer>;
  /** As `call`, of what must be taken. */
  ok(path: string, body?: unknown, method?: string): Promise<Body>;
  /** Until it is there. */
  result(request: Body | string): Promise<Body>;
  /** A model, made. @returns its id */
  model(number?: number, change?: Body): Promise<string>;
  pass(model: string, seq: number, change?: Body): Promise<Answer>;
  step(model: string, seq: number, learningRate?: number): Promise<Answer>;
  /** A sampler of the weights as they are. @returns its id */
  sampler(model: string, seq: number): Promise<string>;
  sample(sampler: string, seq: number | bigint, change?: Body): Promise<Answer>;
}

const chunks = (tokens: readonly number[]) => ({ chunks: [{ type: 'encoded_text', tokens }] });

export async function openTinkerClient(options: TestServerOptions = {}): Promise<TinkerClient> {
  const server = await openTestServer(options);
  const call: TinkerClient['call'] = (path, body, method = 'POST') => server.request(method, `/api/v1/${path}`, body);
  const ok: TinkerClient['ok'] = async (path, body, method) => {
    const answer = await call(path, body, method);
    if (answer.status >= 300) throw new Error(`${path}: HTTP ${answer.status}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const session = String((await ok('create_session', { type: 'create_session', tags: [] })).session_id);
  const client: TinkerClient = {
    server,
    session,
    call,
    ok,
    result: async (request) => {
      const id = typeof request === 'string' ? request : request.request_id;
      for (;;) {
        const body = await ok('retrieve_future', { request_id: id });
        if (body.type !== 'try_again') return body;
      }
    },
    model: async (number = 0, change = {}) => {
      const body = {
        session_id: session,
        model_seq_id: number,
        base_model: 'fake-model',
        lora_config: { rank: 8, seed: 1 },
      };
      const made = await client.result(await ok('create_model', { ...body, ...change }));
      return String(made.model_id);
    },
    pass: (model, seq, change = {}) => {
      const target_tokens = { data: [6, 7, 8], dtype: 'int64', shape: [3] };
      const data = [{ model_input: chunks([5, 6, 7]), loss_fn_inputs: { target_tokens, ...change } }];
      const forward_backward_input = { data, loss_fn: 'cross_entropy' };
      return call('forward_backward', { model_id: model, seq_id: seq, forward_backward_input });
    },
    step: (model, seq, learningRate = 1e-4) =>
      call('optim_step', { model_id: model, seq_id: seq, adam_params: { learning_rate: learningRate } }),
    sampler: async (model, seq) => {
      const save = { model_id: model, seq_id: seq, sampling_session_seq_id: seq };
      const saved = await client.result(await ok('save_weights_for_sampler', save));
      return String(saved.sampling_session_id);
    },
    sample: (sampler, seq, change = {}) => {
      const body = {
        sampling_session_id: sampler,
        prompt: chunks([1, 2, 3]),
        sampling_params: { max_tokens: 4 },
        ...change,
      };
      return call('asample', JSON.stringify(body).replace(/\}$/, `,"seq_id":${seq}}`));
    },
  };
  return client;
}
