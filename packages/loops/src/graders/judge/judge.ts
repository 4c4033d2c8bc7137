/** A language model as judge, behind any endpoint of OpenAI's shape. */
import { complaint } from '@loopwright/protocol';
import { type EndpointOptions, jsonEndpoint } from '../http/post-json.js';
import { type JudgedAnswer, type JudgeMessage, judgePrompt } from './prompt.js';
import { readScore, type Scale, type ScoreForm } from './read-score.js';

export interface JudgeOptions extends Omit<EndpointOptions, 'url'> {
  /** Up to and with `/v1`, such as `http://127.0.0.1:8080/v1`; `/chat/completions` is put behind it. */
  readonly baseUrl: string;
  /** Sent as bearer token. */
  readonly apiKey?: string;
  readonly model: string;
  /** What is good, in words: goes into the default prompt. */
  readonly rubric: string;
  /** Default 0 to 10. */
  readonly scale?: Scale;
  /** Default `json`. */
  readonly form?: ScoreForm;
  /** Answers of the judge, whose median counts; default 1. More than half must have a score. */
  readonly votes?: number;
  /** Default 0. Votes at 0 are mostly the same: give more where you ask for several. */
  readonly temperature?: number;
  /** New tokens of a vote; default 512. */
  readonly maxTokens?: number;
  /** In place of the default prompt. Whoever writes one keeps the candidate's text apart from instructions. */
  readonly prompt?: (answer: JudgedAnswer) => readonly JudgeMessage[];
  /** Further members of the request's body, such as `response_format`. */
  readonly body?: Readonly<Record<string, unknown>>;
}

/** The judge's word. */
export type Rating =
  | {
      readonly status: 'ok' /** On the judge's scale. */;
      readonly score: number;
      readonly votes: readonly (number | null)[];
    }
  /** Too few of its answers had a score in the form that was asked for. */
  | { readonly status: 'unparsed'; readonly votes: readonly (number | null)[] };

export interface Judge {
  readonly scale: Scale;
  /** @throws as the endpoint fails: `grader_timeout`, `connection_lost`, `limit_exceeded`, `operation_failed` */
  rate(answer: JudgedAnswer, signal?: AbortSignal): Promise<Rating>;
}

/** @throws `invalid_argument` for an option out of range */
export function createJudge(options: JudgeOptions): Judge {
  const { scale = { min: 0, max: 10 }, form = 'json', votes = 1, temperature = 0, maxTokens = 512 } = options;
  const { apiKey, headers = {}, rubric, model, baseUrl } = options;
  const refuse = (field: string, expected: string, got: unknown): never => {
    throw complaint({ field, expected, got: String(got) });
  };
  if (!(Number.isInteger(votes) && votes >= 1 && votes <= 99)) refuse('votes', 'a whole number from 1 to 99', votes);
  if (!(Number.isFinite(scale.min) && Number.isFinite(scale.max) && scale.min < scale.max))
    refuse('scale', 'two numbers, the first below the second', `${scale.min}, ${scale.max}`);
  if (!(temperature >= 0 && temperature <= 2)) refuse('temperature', 'from 0 to 2', temperature);
  if (!(Number.isInteger(maxTokens) && maxTokens > 0)) refuse('maxTokens', 'a whole number from 1', maxTokens);
  if (form !== 'json' && form !== 'last-line') refuse('form', 'json or last-line', form);
  if (rubric.trim() === '' && options.prompt === undefined) refuse('rubric', 'what is good, in words', 'blank text');
  const endpoint = jsonEndpoint({
    ...options,
    url: `${baseUrl.replace(/\/+$/, '')}/chat/completions`,
    headers: (body) => ({
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
      ...(typeof headers === 'function' ? headers(body) : headers),
    }),
  });

  return {
    scale,
    rate: async (answer, signal = new AbortController().signal) => {
      const messages = options.prompt?.(answer) ?? judgePrompt(answer, { rubric, form, scale });
      const request = { ...options.body, model, messages, temperature, max_tokens: maxTokens };
      const given = await Promise.all(
        Array.from({ length: votes }, async () => {
          const text = contentOf(await endpoint.post(request, 'judge', signal));
          return readScore(text, form, scale) ?? null;
        }),
      );
      const scores = given.filter((vote) => vote !== null).sort((a, b) => a - b);
      if (scores.length * 2 <= votes) return { status: 'unparsed', votes: given };
      const [low, high] = [scores[Math.ceil(scores.length / 2) - 1]!, scores[Math.floor(scores.length / 2)]!];
      return { status: 'ok', score: (low + high) / 2, votes: given };
    },
  };
}

/** What the first choice says; blank where it was cut or refused, which is no score. */
function contentOf(answer: unknown): string {
  const choices = (answer as { readonly choices?: unknown } | null)?.choices; // true: whatever it is, it may be asked
  const first = Array.isArray(choices)
    ? (choices[0] as { finish_reason?: unknown; message?: { content?: unknown } })
    : undefined;
  if (typeof first !== 'object' || first === null || typeof first.message !== 'object' || first.message === null)
    throw complaint({
      code: 'operation_failed',
      field: 'choices[0].message',
      expected: 'a chat completion',
      got: 'another form',
      remedy: 'check that the address is one of an OpenAI-shaped endpoint',
    });
  const { content } = first.message;
  return typeof content === 'string' && first.finish_reason !== 'length' ? content : '';
}
