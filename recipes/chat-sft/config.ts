/** The settings of the recipe: everything that its numbers depend on, save seed, model and data. */
export const config = {
  steps: 40,
  /** Conversations of a step. */
  batchSize: 8,
  /** Of the letters that are learnt from; others are for judging. */
  train: 160,
  heldOut: 80,
  /** Of the held-out letters, those whose replies are kept from before, amid and after training. */
  fixed: 10,
  /** Longer conversations are left out, and counted. */
  maxRowTokens: 512,
  /** New tokens of a reply when it is judged: those in the house's style have 36 to 40 of SmolLM2's. */
  maxTokens: 60,
  learningRate: 5e-4,
  rank: 16,
  alpha: 32,
} as const;
