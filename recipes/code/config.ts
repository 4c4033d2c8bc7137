/** The settings of the recipe: everything that its numbers depend on, save seed, model and data. */
export const config = {
  steps: 3,
  /** P, problems of a step. */
  groupsPerStep: 4,
  /** G, episodes of each. */
  groupSize: 4,
  /** Answers of an episode: one that may check its program, and the last. */
  maxTurns: 2,
  /** New tokens of an answer at most. */
  maxTokens: 128,
  /** k: a group may be as many optimizer steps old as this; older ones are sampled again. */
  maxStepsOffPolicy: 3,
  learningRate: 5e-5,
  rank: 16,
  alpha: 32,
  /** Problems to be judged by, before and after. */
  heldOut: 20,
} as const;
