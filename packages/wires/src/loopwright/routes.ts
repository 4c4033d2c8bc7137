/** Paths of our own routes beside those of the registry and of usage. */

export const healthPath = '/health';
export const openApiPath = '/openapi.json';
/** As OpenAI's clients read it, and in a word of ours. */
export const modelsPath = '/v1/models';
export const tracePath = '/v1/sessions/:name/trace';
