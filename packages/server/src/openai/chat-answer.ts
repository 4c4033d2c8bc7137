/** A chat request answered, whole or as a stream. */
import type { SampleResult } from '@loopwright/protocol';
import {
  type AnswerHead,
  type ChatRequest,
  encodeChatChunk,
  encodeChatCompletion,
  encodeUsageChunk,
} from '@loopwright/wires/openai';
import type { Context } from 'hono';
import type { AcceptedAnswer, AnswerService } from '../chat/answer-service.js';
import { type AnswerEvent, type AnswerTurn, choiceOf } from '../chat/answer-turn.js';
import { chatPrompt } from '../chat/chat-prompt.js';
import { clientGone } from '../routes/client-gone.js';
import type { RouteEnv } from '../routes/context.js';
import { aliveEveryMs, type EventWriter, eventStream } from './event-stream.js';
import type { AnswerTarget } from './model-targets.js';
import { ToldTokens } from './told-tokens.js';

export interface ChatAnswerOptions {
  readonly answers: AnswerService;
  readonly target: AnswerTarget;
  readonly request: ChatRequest;
  /** What the answer says in `model`. */
  readonly model: string;
}

export async function answerChat(
  c: Context<RouteEnv>,
  { answers, target, request, model }: ChatAnswerOptions,
): Promise<Response> {
  const sessionModel = await answers.model(target.session);
  const { tokens: prompt, newParser, endings } = chatPrompt(sessionModel.tokenizer, request);
  const accepted = await answers.submit({
    target,
    model: sessionModel,
    prompt,
    generation: request,
    newParser,
    endings,
  });
  const { record } = accepted;
  c.var.ids.operationId = record.id;
  const head: AnswerHead = { id: record.id, model, createdAtMs: record.createdAtMs };
  if (!request.stream) return c.json(await whole(c, { answers, accepted, request, head }));
  return eventStream(c, async (writer, signal) => {
    const stream = new ChatStream(writer, { accepted, request, head });
    accepted.listen(({ sample, position, id, logprob }) => stream.token(sample, position, { id, logprob }));
    const onWait = () => writer.alive();
    stream.end(await answers.result(accepted, { signal, everyMs: aliveEveryMs, onWait }));
  });
}

interface Answering {
  readonly accepted: AcceptedAnswer;
  readonly request: ChatRequest;
  readonly head: AnswerHead;
}

async function whole(
  c: Context<RouteEnv>,
  { answers, accepted, request, head }: Answering & { readonly answers: AnswerService },
): Promise<object> {
  accepted.listen(() => {}); // so that what was drawn is known when the caller goes away
  const { sequences } = await answers.result(accepted, { signal: clientGone(c), everyMs: aliveEveryMs });
  const choices = sequences.map((sequence, sample) => {
    const turn = accepted.newTurn(sample);
    const { events, finishReason } = turn.finish(sequence);
    return {
      ...choiceOf(events, finishReason),
      ...(request.logprobs ? { logprobs: turn.shownTokens() } : {}),
      ...(request.tokenIds ? { tokens: turn.tokens } : {}),
    };
  });
  return encodeChatCompletion(head, {
    choices,
    usage: usageOf(accepted, sequences),
    ...(request.tokenIds ? { promptTokenIds: accepted.prompt } : {}),
  });
}

export function usageOf({ prompt }: AcceptedAnswer, sequences: SampleResult['sequences']) {
  const completionTokens = sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);
  return { promptTokens: prompt.length, completionTokens };
}

class ChatStream {
  readonly #writer: EventWriter;
  readonly #answering: Answering;
  readonly #turns: readonly AnswerTurn[];
  readonly #told: readonly ToldTokens[];

  constructor(writer: EventWriter, answering: Answering) {
    this.#writer = writer;
    this.#answering = answering;
    const { accepted, request, head } = answering;
    this.#turns = Array.from({ length: request.n }, (_, sample) => accepted.newTurn(sample));
    this.#told = this.#turns.map((turn) => new ToldTokens(turn, request));
    const promptIds = request.tokenIds ? { promptTokenIds: accepted.prompt } : {};
    for (const index of this.#turns.keys())
      writer.data(encodeChatChunk(head, index, { type: 'begin', ...(index === 0 ? promptIds : {}) }));
  }

  token(sample: number, position: number, drawn: { readonly id: number; readonly logprob: number }): void {
    this.#write(sample, this.#turns[sample]!.push(position, drawn));
  }

  end({ sequences }: SampleResult): void {
    const { accepted, request, head } = this.#answering;
    sequences.forEach((sequence, index) => {
      const { events, finishReason } = this.#turns[index]!.finish(sequence);
      this.#write(index, events);
      const tokens = this.#told[index]!.rest();
      this.#writer.data(encodeChatChunk(head, index, { type: 'end', finishReason }, tokens));
    });
    if (request.includeUsage) this.#writer.data(encodeUsageChunk(head, usageOf(accepted, sequences)));
    this.#writer.done();
  }

  #write(index: number, events: readonly AnswerEvent[]): void {
    for (const event of events)
      this.#writer.data(encodeChatChunk(this.#answering.head, index, event, this.#told[index]!.next()));
  }
}
