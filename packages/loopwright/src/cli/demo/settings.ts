/** The settings of the demo: the one place. */

/** What can be changed on the command line. */
export const demoDefaults = { steps: 30, seed: 1 } as const;

export const demoSettings = {
  model: 'loopwright-tiny',
  rank: 16,
  alpha: 32,
  groupsPerStep: 16,
  samplesPerGroup: 8,
  /** Answers have two or three digits and an end. */
  maxTokens: 8,
  learningRate: 3e-3,
  /** Problems to be judged by, in neither pretraining nor RL data. */
  heldOut: 200,
  /** Completions printed before and after. */
  shown: 6,
  /** Steps between measurements of the distance from the base. */
  klEverySteps: 5,
} as const;
