/** Records the turns of an ordinary agent: what its OpenAI client was answered, as token ids and log-probs. */
import type { SampledTokens } from '@loopwright/client';
import { complaint } from '@loopwright/protocol';
import { answersOf } from './answers.js';

/** A turn of a model: the prompt that it saw and what it sampled, id by id. */
export interface RecordedTurn {
  readonly prompt: readonly number[];
  readonly answer: SampledTokens;
}

/** As much of `fetch` as OpenAI's clients use. */
export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** Asks a Loopwright server for token ids, whatever the body of the request says. */
const tokenIdsHeader = 'x-loopwright-token-ids';

/**
 * Stands between an OpenAI client and the server: `new OpenAI({ baseURL, apiKey, fetch: recorder.fetch })`. The agent that uses the client
 * stays as it is; what it is answered passes through unchanged, streamed or not. One recorder for each run of an agent.
 *
 * A turn is recorded when its answer has come whole: one that failed or that the agent left unread is none.
 *
 * @example
 * const recorder = new TurnRecorder();
 * await agent(new OpenAI({ baseURL: `${service.baseUrl}/v1`, apiKey, fetch: recorder.fetch }), problem);
 * const data = recordedDatums({ turns: recorder.turns, advantage });
 */
export class TurnRecorder {
  readonly #fetch: Fetch;
  /** Turns by request, in the order in which those were sent; empty for what is not, or not yet, answered. */
  readonly #requests: RecordedTurn[][] = [];

  constructor({ fetch = globalThis.fetch }: { readonly fetch?: Fetch } = {}) {
    this.#fetch = fetch;
  }

  /** Whole turns, in the order in which they were asked for. */
  get turns(): readonly RecordedTurn[] {
    return this.#requests.flat();
  }

  /**
   * @throws `invalid_argument` for an answer without token ids, as servers of others give: nothing could be trained on it
   */
  readonly fetch: Fetch = async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    if (!/\/(chat\/)?completions$/.test(url.pathname)) return this.#fetch(input, init);
    const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined));
    headers.set(tokenIdsHeader, 'true');
    const turns: RecordedTurn[] = [];
    this.#requests.push(turns);
    const response = await this.#fetch(input, { ...init, headers });
    if (!response.ok || response.body === null) return response;
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
    if (!isStream) {
      turns.push(...turnsOf([await response.clone().json()]));
      return response;
    }
    const body = response.body.pipeThrough(recordEvents((chunks) => turns.push(...turnsOf(chunks))));
    return new Response(body, { status: response.status, headers: response.headers });
  };
}

/** Turns of a whole answer, or of all chunks of one. */
function turnsOf(bodies: readonly unknown[]): RecordedTurn[] {
  return answersOf(bodies).map(({ prompt, tokens, logprobs, finishReason }) => {
    if (prompt.length === 0 || tokens.length !== logprobs.length) {
      throw complaint({
        field: 'answer',
        expected: 'prompt_token_ids, token_ids and token_logprobs',
        got: `${prompt.length} of a prompt, ${tokens.length} ids and ${logprobs.length} log-probs`,
        remedy: 'record agents that talk to a Loopwright server',
      });
    }
    return { prompt, answer: { tokens, logprobs, stopReason: finishReason === 'length' ? 'length' : 'stop' } };
  });
}

/** Passes a stream of events on as it is, and hands over their data once it says that it is whole. */
function recordEvents(onWhole: (chunks: unknown[]) => void): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  const chunks: unknown[] = [];
  let rest = '';
  return new TransformStream({
    transform(bytes, controller) {
      const events = (rest + decoder.decode(bytes, { stream: true })).split('\n\n');
      rest = events.pop() ?? '';
      for (const event of events) {
        const data = event.startsWith('data: ') ? event.slice(6) : undefined;
        if (data === '[DONE]') onWhole(chunks);
        else if (data !== undefined) chunks.push(JSON.parse(data));
      }
      controller.enqueue(bytes);
    },
  });
}
