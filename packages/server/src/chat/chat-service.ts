/** Chats with a session: rendered by its model's template, answered by a sampling operation like any other. */
import type { OnToken } from '@loopwright/engine';
import { loadModelTokenizer } from '@loopwright/engine';
import { LoopwrightError, type SampleResult, samplingRanges, type VersionId } from '@loopwright/protocol';
import type { Tokenizer } from '@loopwright/text';
import type { ChatRequest } from '@loopwright/wires/openai';
import { shuttingDown } from '../limits/admission.js';
import type { ModelRegistry } from '../models/model-registry.js';
import type { OperationRecord } from '../operations/operation-record.js';
import type { OperationView, SessionService } from '../sessions/session-service.js';
import { AnswerText } from './answer-text.js';

export interface ChatOptions {
  /** A saved version to answer with; the session's latest, or its base, when there is none. */
  readonly version?: VersionId;
  readonly onToken?: OnToken;
}

/** A chat that was accepted as an operation. */
export interface AcceptedChat {
  readonly record: OperationRecord;
  readonly promptTokens: number;
  /** The text of one more answer, in pieces. */
  readonly newText: () => AnswerText;
}

export class ChatService {
  readonly #service: SessionService;
  readonly #models: ModelRegistry;
  readonly #tokenizers = new Map<string, Promise<Tokenizer>>();

  constructor({ service, models }: { readonly service: SessionService; readonly models: ModelRegistry }) {
    this.#service = service;
    this.#models = models;
  }

  /**
   * Returns as soon as the operation is durable.
   *
   * @throws `unknown_session`, `session_not_active`, `unknown_version`; `invalid_argument` for messages that the template refuses, or
   *   a model without one; `context_length_exceeded`
   */
  async submit(session: string, request: ChatRequest, { version, onToken }: ChatOptions): Promise<AcceptedChat> {
    const { baseModel } = (await this.#service.session(session)).spec;
    const [tokenizer, card] = await Promise.all([this.#tokenizer(baseModel), this.#models.card(baseModel)]);
    const prompt = Int32Array.from(tokenizer.applyChatTemplate(request.messages, { addGenerationPrompt: true }));
    const room = Math.min(samplingRanges.maxTokens.max, Math.max(1, card.contextLength - prompt.length));
    const { temperature, topP, stop, seed, maxTokens = room } = request;
    const record = await this.#service.submitSampling(
      session,
      {
        type: 'sample',
        prompt,
        numSamples: request.n,
        params: {
          maxTokens,
          temperature,
          topP,
          topK: -1,
          stop,
          stopTokenIds: [],
          ...(seed === undefined ? {} : { seed }),
        },
        weights: version === undefined ? { type: 'latest' } : { type: 'version', id: version },
        promptLogprobs: false,
        topkPromptLogprobs: 0,
      },
      onToken === undefined ? {} : { onToken },
    );
    return { record, promptTokens: prompt.length, newText: () => new AnswerText(tokenizer, stop) };
  }

  /**
   * Waits for the result. An abort cancels the operation.
   *
   * @param onWait called while nothing has happened for `everyMs`
   * @param isClosing true once the server lets go of what it waits for
   * @throws what the operation failed of; `cancelled`, `shutting_down`
   */
  async result(
    session: string,
    { id }: OperationRecord,
    {
      signal,
      everyMs,
      onWait,
      isClosing,
    }: {
      readonly signal: AbortSignal;
      readonly everyMs: number;
      readonly onWait?: (view: OperationView) => void;
      readonly isClosing: () => boolean;
    },
  ): Promise<SampleResult> {
    for (;;) {
      const view = await this.#service.operation(session, id, { kind: 'sampling', waitMs: everyMs, signal });
      switch (view.status) {
        case 'Completed':
          return view.done.result as SampleResult; // true: `submit` made a sampling operation
        case 'Failed':
        case 'Skipped':
          throw view.error;
        case 'Pending':
        case 'InProgress':
          if (signal.aborted || isClosing()) {
            // Nobody can ask for it again: it must not run, and be billed, in the next process.
            await this.#service.cancel(session, id, 'sampling');
            if (!signal.aborted) throw shuttingDown();
            throw new LoopwrightError({ code: 'cancelled', message: 'chat: the caller has gone' });
          }
          onWait?.(view);
          break;
        default:
          view satisfies never;
      }
    }
  }

  #tokenizer(baseModel: string): Promise<Tokenizer> {
    let loading = this.#tokenizers.get(baseModel);
    if (loading === undefined) {
      loading = this.#models.find(baseModel).then(async (model) => loadModelTokenizer(await this.#models.files(model)));
      this.#tokenizers.set(baseModel, loading);
      loading.catch(() => this.#tokenizers.delete(baseModel));
    }
    return loading;
  }
}
