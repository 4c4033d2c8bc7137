/** The settings of the recipe: everything that its numbers depend on, save seed and model. */
export const config = {
  /** Supervised steps on what a careless clerk wrote: the bundled model has never seen JSON. */
  warmUp: {
    steps: 120,
    batchSize: 32,
    learningRate: 2e-3,
    gradClipNorm: 1,
    /** Shares of points of which the clerk writes `y` as a text, and leaves `z` out. */
    yAsText: 0.55,
    noZ: 0.3,
  },
  steps: 20,
  /** P, points of a step. */
  groupsPerStep: 16,
  /** G, answers to each. */
  groupSize: 8,
  /** The longest right answer has 19 characters, each a token, and an end. */
  maxTokens: 24,
  learningRate: 2e-4,
  /** Points to be judged by. */
  heldOut: 200,
} as const;
