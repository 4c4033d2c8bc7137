/** The settings of the recipe: everything that its numbers depend on, save seed, model and data. */
export const config = {
  steps: 30,
  /** Pairs of a step. */
  batchSize: 8,
  /** β: how strongly the reference holds. */
  beta: 0.1,
  /** Longer answers with their prompts are left out, and counted. */
  maxRowTokens: 512,
  /** New tokens of an answer when it is judged. */
  maxTokens: 40,
  /** Of the held-out questions, those whose answers are kept from before and after training. */
  fixed: 20,
  learningRate: 2e-4,
  rank: 16,
  alpha: 32,
} as const;
