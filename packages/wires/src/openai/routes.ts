/** Paths and headers of this wire. */

export const openaiPaths = {
  models: '/v1/models',
  completions: '/v1/completions',
  chatCompletions: '/v1/chat/completions',
} as const;

/** First words of the routes that OpenAI's clients ask for, whether this wire has them or not. */
const resources: readonly string[] = [
  ...['chat/completions', 'completions', 'models', 'responses', 'embeddings', 'moderations', 'images', 'audio'],
  ...['files', 'uploads', 'batches', 'fine_tuning', 'assistants', 'threads', 'vector_stores', 'conversations'],
];
const route = new RegExp(`^(?:/v1)*/(${resources.join('|')})(?:/|$)`);

/** What a client of OpenAI's API asked for by a path, whether its base URL has /v1 once, twice or not; undefined where it is none of its routes. */
export function openaiResource(path: string): string | undefined {
  return route.exec(path)?.[1];
}

/**
 * Whether an error of this path is told in OpenAI's shape: also where nothing is there, since a client with another base URL would
 * otherwise see a bare 404. The list of models is ours as well; its errors are told in both shapes.
 */
export function isOpenAIPath(path: string): boolean {
  return path !== openaiPaths.models && openaiResource(path) !== undefined;
}

/** Headers of ours on this wire. */
export const openaiHeaders = {
  /** On requests: `true` asks for token ids and log-probs as `return_token_ids` does, for clients whose bodies one can't change. */
  tokenIds: 'x-loopwright-token-ids',
  /** On answers: fields of the request that nobody knows, which were left out, comma between. */
  ignoredFields: 'x-loopwright-ignored-fields',
} as const;
