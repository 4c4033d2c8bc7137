/** A stream of server-sent events: chunks as JSON, signs of life as comments, an error as the last event. */
import { asLoopwrightError } from '@loopwright/protocol';
import { errorEvent } from '@loopwright/wires/openai';
import type { Context } from 'hono';
import { type SSEStreamingApi, streamSSE } from 'hono/streaming';
import { clientGone } from '../routes/client-gone.js';
import type { RouteEnv } from '../routes/context.js';

/** A stream says at least so often that it is alive, in a comment, which clients leave out. */
export const aliveEveryMs = 15_000;

export class EventWriter {
  /** Resolves when all that was handed over so far has been written. */
  written: Promise<unknown> = Promise.resolve();
  readonly #stream: SSEStreamingApi;

  constructor(stream: SSEStreamingApi) {
    this.#stream = stream;
  }

  data(value: object): void {
    this.#write(`data: ${JSON.stringify(value)}\n\n`);
  }

  alive(): void {
    this.#write(': at work\n\n');
  }

  /** The event that says that the stream is whole. */
  done(): void {
    this.#write('data: [DONE]\n\n');
  }

  #write(event: string): void {
    this.written = this.written.then(() => this.#stream.write(event));
  }
}

/**
 * Answers with what `work` writes; its signal fires when the reader has gone.
 * The status has been sent by then, so what goes wrong is the last event, and nothing says that the answer is whole.
 */
export function eventStream(
  c: Context<RouteEnv>,
  work: (writer: EventWriter, signal: AbortSignal) => Promise<void>,
): Response {
  const { requestId } = c.var;
  return streamSSE(c, async (stream) => {
    const gone = new AbortController();
    stream.onAbort(() => gone.abort());
    const writer = new EventWriter(stream);
    try {
      await work(writer, AbortSignal.any([gone.signal, clientGone(c)]));
    } catch (error) {
      const known = asLoopwrightError(error);
      c.var.ids.code = known.code;
      writer.data(errorEvent(known, requestId));
    }
    await writer.written;
  });
}
