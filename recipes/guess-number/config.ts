/** The settings of the recipe: everything that its numbers depend on, save seed and model. */
export const config = {
  /** Numbers of a range: who halves finds any of up to 15 in four guesses. */
  widths: [5, 6, 7, 8, 9, 10],
  maxTurns: 4,
  /** A number of two digits and an end. */
  maxTokens: 4,
  /** Supervised steps on games of a player who guesses at random, to learn how the game is played. */
  warmUp: { steps: 120, batchSize: 32, learningRate: 2e-3, gradClipNorm: 1 },
  steps: 40,
  /** P, games of a step. */
  groupsPerStep: 16,
  /** G, plays of each. */
  groupSize: 8,
  learningRate: 2e-4,
  /** Ranges to be judged by. */
  heldOut: 200,
} as const;
