/** The settings of the recipe: everything that its numbers depend on, save seed and model. */
export const config = {
  steps: 40,
  /** P, problems of a step. */
  groupsPerStep: 32,
  /** G, answers to each. */
  groupSize: 8,
  /** Answers have one to three digits and an end. */
  maxTokens: 8,
  learningRate: 1e-3,
  rank: 16,
  alpha: 32,
  /** Problems to be judged by, before and after. */
  heldOut: 500,
} as const;
