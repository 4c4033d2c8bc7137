/** The settings of the recipe: everything that its numbers depend on, save seed, model and data. */
export const config = {
  steps: 40,
  /** Answers of a step, each with a thumb up or down. */
  batchSize: 16,
  /** Questions that are learnt from, each with one judged answer; others are for judging. */
  train: 400,
  heldOut: 100,
  /** β: how strongly the reference holds. */
  beta: 0.1,
  /** Longer answers with their prompts are left out, and counted. */
  maxRowTokens: 512,
  /** New tokens of an answer when it is judged. */
  maxTokens: 24,
  /** Of the held-out questions, those whose answers are kept from before and after training. */
  fixed: 20,
  learningRate: 2e-4,
  rank: 16,
  alpha: 32,
} as const;
