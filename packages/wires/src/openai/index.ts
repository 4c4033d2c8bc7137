/** The wire of OpenAI's API: chat completions, completions, models. */
export type { AnswerHead, AnswerToken, AnswerUsage, LikelyToken } from './answer.js';
export type { ChatRequest } from './chat-request.js';
export { chatFields, decodeChatRequest } from './chat-request.js';
export type {
  BrokenCall,
  ChatChoice,
  ChatDelta,
  ChunkTokens,
  FinishReason,
  ToolCall,
} from './chat-response.js';
export { encodeChatChunk, encodeChatCompletion, encodeUsageChunk } from './chat-response.js';
export type { CompletionPrompt, CompletionRequest } from './completion-request.js';
export { completionFields, decodeCompletionRequest } from './completion-request.js';
export type { CompletionChoice } from './completion-response.js';
export { encodeCompletion } from './completion-response.js';
export type { OpenAIError } from './errors.js';
export { encodeOpenAIError, errorEvent } from './errors.js';
export type { GenerationRequest } from './generation.js';
export type { ChatRequestMessage } from './messages.js';
export type { ServedModel } from './models.js';
export { encodeModel } from './models.js';
export { isOpenAIPath, openaiHeaders, openaiPaths, openaiResource } from './routes.js';
export type { ToolChoice, ToolDefinition, ToolRequest } from './tools.js';
