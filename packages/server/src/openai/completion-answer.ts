/** A completion request answered, whole or as a stream: text goes on, control tokens of the prompt are read as such. */
import { turnParser } from '@loopwright/text';
import {
  type AnswerHead,
  type CompletionChoice,
  type CompletionPrompt,
  type CompletionRequest,
  encodeCompletion,
} from '@loopwright/wires/openai';
import type { Context } from 'hono';
import type { AcceptedAnswer, AnswerService, SessionModel } from '../chat/answer-service.js';
import { type AnswerTurn, choiceOf } from '../chat/answer-turn.js';
import { clientGone } from '../routes/client-gone.js';
import type { RouteEnv } from '../routes/context.js';
import { usageOf } from './chat-answer.js';
import { aliveEveryMs, type EventWriter, eventStream } from './event-stream.js';
import type { AnswerTarget } from './model-targets.js';
import { ToldTokens } from './told-tokens.js';

export interface CompletionAnswerOptions {
  readonly answers: AnswerService;
  readonly target: AnswerTarget;
  readonly request: CompletionRequest;
  readonly model: string;
}

export async function answerCompletion(
  c: Context<RouteEnv>,
  { answers, target, request, model }: CompletionAnswerOptions,
): Promise<Response> {
  const sessionModel = await answers.model(target.session);
  // Text alone: no reasoning, no calls.
  const format = { ...sessionModel.tokenizer.turnFormat, tools: 'none', thinking: false } as const;
  const newParser = () => turnParser(format, { tools: [] });
  const prompts = request.prompts.map((prompt) => idsOf(prompt, sessionModel));
  // The streamed one has one prompt; others are drawn beside each other.
  const accepted = await Promise.all(
    prompts.map((prompt) => answers.submit({ target, model: sessionModel, prompt, generation: request, newParser })),
  );
  const { record } = accepted[0]!; // the wire takes no request without a prompt
  c.var.ids.operationId = record.id;
  const head: AnswerHead = { id: record.id, model, createdAtMs: record.createdAtMs };
  const echoOf = (index: number) => (request.echo ? echoed(request.prompts[index]!, sessionModel) : '');
  if (request.stream) {
    return eventStream(c, async (writer, signal) => {
      const stream = new CompletionStream(writer, { accepted: accepted[0]!, request, head, echo: echoOf(0) });
      accepted[0]!.listen(({ sample, position, id, logprob }) => stream.token(sample, position, { id, logprob }));
      const onWait = () => writer.alive();
      stream.end(await answers.result(accepted[0]!, { signal, everyMs: aliveEveryMs, onWait }));
    });
  }
  const signal = clientGone(c);
  const results = await Promise.all(
    accepted.map((one) => {
      one.listen(() => {}); // so that what was drawn is known when the caller goes away
      return answers.result(one, { signal, everyMs: aliveEveryMs });
    }),
  );
  const choices = results.flatMap(({ sequences }, i) =>
    sequences.map((sequence, sample): CompletionChoice => {
      const turn = accepted[i]!.newTurn(sample);
      const { events } = turn.finish(sequence);
      return {
        text: echoOf(i) + choiceOf(events, 'stop').content,
        finishReason: sequence.stopReason,
        ...(request.logprobs ? { logprobs: turn.shownTokens() } : {}),
        ...(request.tokenIds ? { tokens: turn.tokens } : {}),
        ...(request.tokenIds ? { promptTokenIds: prompts[i]! } : {}),
      };
    }),
  );
  const usages = results.map(({ sequences }, i) => usageOf(accepted[i]!, sequences));
  const usage = {
    promptTokens: usages.reduce((sum, { promptTokens }) => sum + promptTokens, 0),
    completionTokens: usages.reduce((sum, { completionTokens }) => sum + completionTokens, 0),
  };
  return c.json(encodeCompletion(head, { choices, usage }));
}

function idsOf(prompt: CompletionPrompt, { tokenizer }: SessionModel): Int32Array {
  if (typeof prompt !== 'string') return Int32Array.from(prompt);
  return Int32Array.from(tokenizer.encode(prompt, { addSpecialTokens: true, parseSpecialTokens: true }));
}

function echoed(prompt: CompletionPrompt, { tokenizer }: SessionModel): string {
  return typeof prompt === 'string' ? prompt : tokenizer.decode(prompt);
}

interface Answering {
  readonly accepted: AcceptedAnswer;
  readonly request: CompletionRequest;
  readonly head: AnswerHead;
  readonly echo: string;
}

class CompletionStream {
  readonly #writer: EventWriter;
  readonly #answering: Answering;
  readonly #turns: readonly AnswerTurn[];
  readonly #told: readonly ToldTokens[];
  readonly #characters: number[];

  constructor(writer: EventWriter, answering: Answering) {
    const { accepted, request, head, echo } = answering;
    this.#writer = writer;
    this.#answering = answering;
    this.#turns = Array.from({ length: request.n }, (_, sample) => accepted.newTurn(sample));
    this.#told = this.#turns.map((turn) => new ToldTokens(turn, request));
    this.#characters = this.#turns.map(() => 0);
    if (echo === '' && !request.tokenIds) return;
    const promptIds = request.tokenIds ? { promptTokenIds: accepted.prompt } : {};
    for (const index of this.#turns.keys())
      writer.data(
        encodeCompletion(head, { choices: [{ text: echo, finishReason: null, ...promptIds }], firstIndex: index }),
      );
  }

  token(sample: number, position: number, drawn: { readonly id: number; readonly logprob: number }): void {
    const text = choiceOf(this.#turns[sample]!.push(position, drawn), 'stop').content;
    if (text !== '') this.#write(sample, text, null);
  }

  end({ sequences }: Awaited<ReturnType<AnswerService['result']>>): void {
    const { accepted, request, head } = this.#answering;
    sequences.forEach((sequence, index) => {
      const { events } = this.#turns[index]!.finish(sequence);
      this.#write(index, choiceOf(events, 'stop').content, sequence.stopReason);
    });
    if (request.includeUsage)
      this.#writer.data(encodeCompletion(head, { choices: [], usage: usageOf(accepted, sequences) }));
    this.#writer.done();
  }

  #write(index: number, text: string, finishReason: CompletionChoice['finishReason']): void {
    const { request, head } = this.#answering;
    const told = this.#told[index]!;
    const isLast = finishReason !== null;
    // Log-probs that waited for the end are those of the whole answer.
    const textOffset = isLast && request.topLogprobs > 0 ? 0 : this.#characters[index]!;
    const choice = { text, finishReason, textOffset, ...(isLast ? told.rest() : told.next()) };
    this.#characters[index]! += text.length;
    this.#writer.data(encodeCompletion(head, { choices: [choice], firstIndex: index }));
  }
}
