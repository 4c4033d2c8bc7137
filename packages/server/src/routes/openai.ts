/** Routes of the OpenAI wire. The list of models is in `app.ts`, since it is ours as well. */
import { complaint } from '@loopwright/protocol';
import {
  decodeChatRequest,
  decodeCompletionRequest,
  encodeModel,
  type GenerationRequest,
  openaiHeaders,
  openaiPaths,
} from '@loopwright/wires/openai';
import type { Context } from 'hono';
import type { AnswerService } from '../chat/answer-service.js';
import { answerChat } from '../openai/chat-answer.js';
import { answerCompletion } from '../openai/completion-answer.js';
import type { AnswerTarget, ModelTargets } from '../openai/model-targets.js';
import type { App, RouteEnv } from './context.js';
import { readJson } from './read-body.js';

export interface OpenAIRoutesOptions {
  readonly answers: AnswerService;
  readonly targets: ModelTargets;
}

export function openaiRoutes(app: App, { answers, targets }: OpenAIRoutesOptions): void {
  app.get(`${openaiPaths.models}/:model{.+}`, async (c) => {
    const id = c.req.param('model');
    const model = (await targets.list()).find((served) => served.id === id);
    if (model !== undefined) return c.json(encodeModel(model));
    throw complaint({
      code: 'unknown_model',
      field: 'model',
      expected: 'the id of a model in the list',
      got: id.slice(0, 200),
      remedy: 'GET /v1/models lists what there is',
    });
  });

  app.post(openaiPaths.chatCompletions, async (c) => {
    const request = withHeaders(c, decodeChatRequest(await readJson(c)));
    const { model, target } = await targetOf(request, targets);
    return answerChat(c, { answers, target, request, model });
  });

  app.post(openaiPaths.completions, async (c) => {
    const request = withHeaders(c, decodeCompletionRequest(await readJson(c)));
    const { model, target } = await targetOf(request, targets);
    return answerCompletion(c, { answers, target, request, model });
  });
}

async function targetOf(
  { model }: GenerationRequest,
  targets: ModelTargets,
): Promise<{ readonly model: string; readonly target: AnswerTarget }> {
  if (model === undefined) {
    throw complaint({
      field: 'body.model',
      expected: 'the name of a session, a saved version or a base model',
      got: 'nothing',
      remedy: 'GET /v1/models lists what there is',
    });
  }
  return { model, target: await targets.resolve(model) };
}

/** What headers add to a request, and what the answer's say of it. */
function withHeaders<R extends GenerationRequest>(c: Context<RouteEnv>, request: R): R {
  tellIgnored(c, request.ignored);
  return c.req.header(openaiHeaders.tokenIds) === 'true' ? { ...request, tokenIds: true } : request;
}

/** Unknown fields were left out, and the answer says which. */
export function tellIgnored(c: Context<RouteEnv>, ignored: readonly string[]): void {
  if (ignored.length > 0) c.header(openaiHeaders.ignoredFields, ignored.join(', '));
}
