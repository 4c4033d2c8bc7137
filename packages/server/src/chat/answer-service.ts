/** Answers to prompts, each drawn by a sampling operation like any other: logged, billed, cancelled when nobody waits for it. */
import type { DrawnToken, OnToken } from '@loopwright/engine';
import { loadModelTokenizer } from '@loopwright/engine';
import { LoopwrightError, type ModelCard, type SampleResult, samplingRanges } from '@loopwright/protocol';
import type { Tokenizer, TurnParser } from '@loopwright/text';
import type { GenerationRequest } from '@loopwright/wires/openai';
import { shuttingDown } from '../limits/admission.js';
import type { ModelRegistry } from '../models/model-registry.js';
import type { AnswerTarget } from '../openai/model-targets.js';
import type { OperationRecord } from '../operations/operation-record.js';
import type { OperationView } from '../sessions/operation-view.js';
import type { SessionService } from '../sessions/session-service.js';
import { AnswerTurn } from './answer-turn.js';

/** The model that a session samples from. */
export interface SessionModel {
  readonly tokenizer: Tokenizer;
  readonly card: ModelCard;
}

export interface AnswerRequest {
  readonly target: AnswerTarget;
  readonly model: SessionModel;
  /** Token ids. */
  readonly prompt: Int32Array;
  readonly generation: GenerationRequest;
  /** Of one more answer. */
  readonly newParser: () => TurnParser;
  /** Texts at which decoding ends that stay in the answer. */
  readonly endings?: readonly string[];
}

/** A prompt that was accepted as an operation. */
export interface AcceptedAnswer {
  readonly session: string;
  readonly record: OperationRecord;
  readonly prompt: Int32Array;
  /** One of the answers, to be given its tokens. */
  readonly newTurn: (sample: number) => AnswerTurn;
  /** Takes over the tokens as they are drawn, those that came already first. */
  readonly listen: (onToken: OnToken) => void;
}

export interface ResultOptions {
  /** An abort cancels the operation. */
  readonly signal: AbortSignal;
  readonly everyMs: number;
  /** Called while nothing has happened for `everyMs`. */
  readonly onWait?: (view: OperationView) => void;
}

export interface AnswerServiceOptions {
  readonly service: SessionService;
  readonly models: ModelRegistry;
  /** True once the server lets go of what it waits for. */
  readonly isClosing: () => boolean;
}

export class AnswerService {
  readonly #service: SessionService;
  readonly #models: ModelRegistry;
  readonly #isClosing: () => boolean;
  readonly #tokenizers = new Map<string, Promise<Tokenizer>>();

  constructor({ service, models, isClosing }: AnswerServiceOptions) {
    this.#service = service;
    this.#models = models;
    this.#isClosing = isClosing;
  }

  /** @throws `unknown_session`, `model_invalid` */
  async model(session: string): Promise<SessionModel> {
    const { baseModel } = (await this.#service.session(session)).spec;
    const [tokenizer, card] = await Promise.all([this.#tokenizer(baseModel), this.#models.card(baseModel)]);
    return { tokenizer, card };
  }

  /**
   * Returns as soon as the operation is durable.
   *
   * @throws `unknown_session`, `session_not_active`, `unknown_version`; `invalid_argument`, `context_length_exceeded`
   */
  async submit({ target, model, prompt, generation, newParser, endings = [] }: AnswerRequest): Promise<AcceptedAnswer> {
    const { tokenizer, card } = model;
    const room = Math.min(samplingRanges.maxTokens.max, Math.max(1, card.contextLength - prompt.length));
    const { temperature, topP, topK, stop, seed, maxTokens = room, n, topLogprobs } = generation;
    const { session, version } = target;
    // Tokens that come before anybody listens wait for it.
    const early: DrawnToken[] = [];
    let onToken: OnToken = (token) => {
      early.push(token);
    };
    const record = await this.#service.submitSampling(
      session,
      {
        type: 'sample',
        prompt,
        numSamples: n,
        params: {
          maxTokens,
          temperature,
          topP,
          topK,
          stop: [...stop, ...endings],
          stopTokenIds: [],
          ...(seed === undefined ? {} : { seed }),
        },
        weights: version === undefined ? { type: 'latest' } : { type: 'version', id: version },
        promptLogprobs: false,
        topkPromptLogprobs: 0,
        ...(topLogprobs === 0 ? {} : { topkSampleLogprobs: topLogprobs }),
      },
      { onToken: (token) => onToken(token) },
    );
    return {
      session,
      record,
      prompt,
      newTurn: (sample) => new AnswerTurn({ tokenizer, parser: newParser(), stop, callSeed: `${record.id}/${sample}` }),
      listen: (listener) => {
        for (const token of early.splice(0)) listener(token);
        onToken = listener;
      },
    };
  }

  /** Waits for the result. @throws what the operation failed of; `cancelled`, `shutting_down` */
  async result(
    { session, record: { id } }: Pick<AcceptedAnswer, 'session' | 'record'>,
    { signal, everyMs, onWait }: ResultOptions,
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
          if (signal.aborted || this.#isClosing()) {
            // Nobody can ask for it again: it must not run, and be billed, in the next process.
            await this.#service.cancel(session, id, 'sampling');
            if (!signal.aborted) throw shuttingDown();
            throw new LoopwrightError({ code: 'cancelled', message: 'the caller has gone' });
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
