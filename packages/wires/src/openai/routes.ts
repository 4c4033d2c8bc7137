/** Paths and headers of this wire. */

export const openaiPaths = {
  models: '/v1/models',
  completions: '/v1/completions',
  chatCompletions: '/v1/chat/completions',
} as const;

/** Whether an error of this path is told in OpenAI's shape. The list of models is ours as well, and its errors are. */
export function isOpenAIPath(path: string): boolean {
  return path.startsWith('/v1/models/') || path === openaiPaths.completions || path === openaiPaths.chatCompletions;
}

/** Headers of ours on this wire. */
export const openaiHeaders = {
  /** On requests: `true` asks for token ids and log-probs as `return_token_ids` does, for clients whose bodies one can't change. */
  tokenIds: 'x-loopwright-token-ids',
  /** On answers: fields of the request that nobody knows, which were left out, comma between. */
  ignoredFields: 'x-loopwright-ignored-fields',
} as const;
