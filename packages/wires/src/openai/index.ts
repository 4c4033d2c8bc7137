/** The chat completions wire, in OpenAI's shape. */
export type { ChatRequest, ChatRequestMessage } from './chat-request.js';
export { decodeChatRequest } from './chat-request.js';
export type { ChatAnswer, ChatChoice, ChatDelta, ChatUsage } from './chat-response.js';
export { encodeChatChunk, encodeChatCompletion, encodeUsageChunk } from './chat-response.js';
