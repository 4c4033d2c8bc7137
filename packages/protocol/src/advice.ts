/** What to try instead, by field: advice that a range alone does not give. */

const advice: Readonly<Record<string, string>> = {
  // Optimizer
  learningRate: '1e-5 to 1e-3 is usual for adapters, a tenth of that for full training',
  beta1: '0.9 is usual',
  beta2: '0.95 to 0.999 is usual',
  eps: '1e-8 is usual',
  weightDecay: '0 to 0.1 is usual',
  gradClipNorm: '1 is usual; 0 switches clipping off',
  loraPlusLrRatio: '1 gives both matrices the same learning rate',
  // Sessions
  rank: '8 to 64 is usual',
  alpha: 'the rank or twice the rank is usual',
  targetModules: 'leave it out to adapt all linear layers but lm_head',
  seed: 'leave it out to have one drawn',
  trainingSessionName: 'use letters, digits and inner hyphens, or leave the name out',
  // Sampling
  temperature: '1 leaves the probabilities as the model gives them',
  topP: '1 keeps all tokens',
  topK: '-1 keeps all tokens',
  maxTokens: 'prompt and answer together must fit the context of the model',
  numSamples: 'split larger groups over several calls; they run at the same time',
  topkPromptLogprobs: '0 switches them off',
  topkSampleLogprobs: '0 switches them off',
  stop: 'leave it out to end at the end of the sequence or at maxTokens',
  prompt: 'encode the prompt with the tokenizer of the model',
  // Losses and their inputs
  clipLowThreshold: 'thresholds bound the ratio itself: 0.8 and 1.2 are usual',
  clipHighThreshold: 'thresholds bound the ratio itself: 0.8 and 1.2 are usual',
  data: 'give all datums of a pass as one list',
  datumList: 'give all datums of a pass as one list',
  modelInput: 'encode the text with the tokenizer of the model',
  lossFnInputs: 'sftDatum and rlDatum make the inputs of a loss from tokens',
  targetTokens: 'position t of the model input predicts target t; sftDatum and rlDatum do the shift',
  weights: 'give one weight for each token of the model input; 0 leaves a position out',
  advantages: 'give one advantage for each token of the model input, 0 where its weight is 0',
  logprobs: 'give one log-probability for each token of the model input, as sampling returned them',
  refLogProb: 'give one log-probability for each token of the model input, as computeLogprobs returns them',
  // Saving
  ttlSeconds: 'leave it out to keep the version',
  description: 'give a short text, or leave it out',
  // Connecting
  baseUrl: 'loopwright serve prints the address to use',
  apiKey: 'a key of 32 random characters is a good one',
};

/** Advice on a field, named by its path as any wire spells it; undefined where there is none. */
export function adviceOn(field: string): string | undefined {
  const steps = field
    .replace(/\[\d+\]/g, '')
    .split(/[.\s]+/)
    .map(camelCase);
  while (steps.length > 1 && carriers.has(steps.at(-1)!)) steps.pop();
  const name = steps.at(-1)!; // true: a split has one part at least
  return Object.hasOwn(advice, name) ? advice[name] : undefined;
}

/** Steps of a path that only carry what the step before them names. */
const carriers: ReadonlySet<string> = new Set(['data', 'chunks', 'tokens', 'shape', 'dtype']);

function camelCase(step: string): string {
  const joined = step.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  return joined.charAt(0).toLowerCase() + joined.slice(1);
}
