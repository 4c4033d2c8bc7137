/** Chat completions with a session, whole or as a stream of server-sent events. */
import { asLoopwrightError } from '@loopwright/protocol';
import {
  type ChatAnswer,
  type ChatRequest,
  decodeChatRequest,
  encodeChatChunk,
  encodeChatCompletion,
  encodeUsageChunk,
} from '@loopwright/wires/openai';
import { headers, runtimeRoutes } from '@loopwright/wires/sagemaker';
import type { Context } from 'hono';
import { type SSEStreamingApi, streamSSE } from 'hono/streaming';
import type { AcceptedChat, ChatOptions, ChatService } from '../chat/chat-service.js';
import type { App, RouteEnv } from './context.js';
import { readJson } from './read-body.js';
import { arns } from './runtime-plane.js';

/** A stream says at least so often that it is alive, in a comment, which clients leave out. */
const aliveEveryMs = 15_000;

/** Both routes answer alike: a stream where the body or the route asks for one. */
export function chatRoutes(app: App, chats: ChatService): void {
  app.post(runtimeRoutes.chat.path, (c) => answer(c, c.req.param('name'), chats, 'as asked'));
  app.post(runtimeRoutes.chatStream.path, (c) => answer(c, c.req.param('name'), chats, 'stream'));
}

async function answer(
  c: Context<RouteEnv>,
  session: string,
  chats: ChatService,
  form: 'as asked' | 'stream',
): Promise<Response> {
  const request = decodeChatRequest(await readJson(c));
  const arn = c.req.header(headers.modelPackage);
  const options: ChatOptions = arn === undefined ? {} : { version: arns.toVersion(arn, headers.modelPackage) };
  if (form === 'stream' || request.stream) return streamed(c, session, chats, { request, options });

  const { record, promptTokens, newText } = await chats.submit(session, request, options);
  c.var.ids.operationId = record.id;
  const { signal } = c.req.raw;
  const isClosing = () => c.var.admission.isClosed;
  const { sequences } = await chats.result(session, record, { signal, everyMs: aliveEveryMs, isClosing });
  const choices = sequences.map(({ tokens, stopReason }) => ({
    text: newText().finish(tokens),
    finishReason: stopReason,
  }));
  const completionTokens = sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);
  const answerOf: ChatAnswer = { id: record.id, model: session, createdAtMs: record.createdAtMs };
  return c.json(encodeChatCompletion(answerOf, { choices, usage: { promptTokens, completionTokens } }));
}

async function streamed(
  c: Context<RouteEnv>,
  session: string,
  chats: ChatService,
  { request, options }: { readonly request: ChatRequest; readonly options: ChatOptions },
): Promise<Response> {
  // Tokens that come before the stream is open wait for it.
  const early: Parameters<NonNullable<ChatOptions['onToken']>>[0][] = [];
  let onToken = (token: (typeof early)[number]): void => {
    early.push(token);
  };
  const accepted = await chats.submit(session, request, { ...options, onToken: (token) => onToken(token) });
  c.var.ids.operationId = accepted.record.id;
  return streamSSE(c, async (stream) => {
    const gone = new AbortController();
    stream.onAbort(() => gone.abort());
    const writer = new ChunkWriter(stream, { accepted, model: session, n: request.n });
    try {
      for (const token of early) writer.token(token);
      onToken = (token) => writer.token(token);
      const { sequences } = await chats.result(session, accepted.record, {
        signal: gone.signal,
        everyMs: aliveEveryMs,
        isClosing: () => c.var.admission.isClosed,
        onWait: () => writer.alive(),
      });
      writer.end(sequences, request.includeUsage);
    } catch (error) {
      // The status has been sent: what went wrong is the last event, and nothing says that the answer is whole.
      const { code, message } = asLoopwrightError(error);
      writer.data({ error: { message, type: code, code } });
    }
    await writer.written;
  });
}

class ChunkWriter {
  /** Resolves when all that was handed over so far has been written. */
  written: Promise<unknown> = Promise.resolve();
  readonly #stream: SSEStreamingApi;
  readonly #accepted: AcceptedChat;
  readonly #answer: ChatAnswer;
  readonly #texts: readonly ReturnType<AcceptedChat['newText']>[];

  constructor(
    stream: SSEStreamingApi,
    { accepted, model, n }: { readonly accepted: AcceptedChat; readonly model: string; readonly n: number },
  ) {
    this.#stream = stream;
    this.#accepted = accepted;
    this.#answer = { id: accepted.record.id, model, createdAtMs: accepted.record.createdAtMs };
    this.#texts = Array.from({ length: n }, accepted.newText);
    for (let index = 0; index < n; index++) this.data(encodeChatChunk(this.#answer, index, { type: 'begin' }));
  }

  token({ sample, position, id }: { readonly sample: number; readonly position: number; readonly id: number }): void {
    this.#text(sample, this.#texts[sample]!.push(position, id));
  }

  end(
    sequences: readonly { readonly tokens: Int32Array; readonly stopReason: 'stop' | 'length' }[],
    includeUsage: boolean,
  ): void {
    sequences.forEach(({ tokens, stopReason }, index) => {
      this.#text(index, this.#texts[index]!.finish(tokens));
      this.data(encodeChatChunk(this.#answer, index, { type: 'end', finishReason: stopReason }));
    });
    const completionTokens = sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);
    const { promptTokens } = this.#accepted;
    if (includeUsage) this.data(encodeUsageChunk(this.#answer, { promptTokens, completionTokens }));
    this.#write('data: [DONE]\n\n');
  }

  alive(): void {
    this.#write(': at work\n\n');
  }

  data(value: object): void {
    this.#write(`data: ${JSON.stringify(value)}\n\n`);
  }

  #text(index: number, text: string): void {
    if (text !== '') this.data(encodeChatChunk(this.#answer, index, { type: 'text', text }));
  }

  #write(event: string): void {
    this.written = this.written.then(() => this.#stream.write(event));
  }
}
