/** Chat completions of the SageMaker wire: with the session that the path names, or the saved version that a header names. */
import { decodeChatRequest } from '@loopwright/wires/openai';
import { headers, runtimeRoutes } from '@loopwright/wires/sagemaker';
import type { Context } from 'hono';
import type { AnswerService } from '../chat/answer-service.js';
import { answerChat } from '../openai/chat-answer.js';
import type { App, RouteEnv } from './context.js';
import { tellIgnored } from './openai.js';
import { readJson } from './read-body.js';
import { arns } from './runtime-plane.js';

/** Both routes answer alike: a stream where the body or the route asks for one. */
export function chatRoutes(app: App, answers: AnswerService): void {
  app.post(runtimeRoutes.chat.path, (c) => answer(c, c.req.param('name'), answers, 'as asked'));
  app.post(runtimeRoutes.chatStream.path, (c) => answer(c, c.req.param('name'), answers, 'stream'));
}

async function answer(
  c: Context<RouteEnv>,
  session: string,
  answers: AnswerService,
  form: 'as asked' | 'stream',
): Promise<Response> {
  const asked = decodeChatRequest(await readJson(c));
  tellIgnored(c, asked.ignored);
  const request = form === 'stream' ? { ...asked, stream: true } : asked;
  const arn = c.req.header(headers.modelPackage);
  const version = arn === undefined ? {} : { version: arns.toVersion(arn, headers.modelPackage) };
  return answerChat(c, { answers, target: { session, ...version }, request, model: session });
}
