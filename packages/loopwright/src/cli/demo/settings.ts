/** The settings of the demo: the one place. */

/** What can be changed on the command line. */
export const demoDefaults = {
  steps: 50,
  seed: 1,
  /** Problems to be judged by, in neither pretraining nor RL data. */
  heldOut: 200,
} as const;

export const demoSettings = {
  model: 'loopwright-tiny',
  rank: 16,
  alpha: 32,
  groupsPerStep: 32,
  samplesPerGroup: 8,
  /** Answers have one to three digits and an end. */
  maxTokens: 8,
  /** Three times this learns faster at first and stays at 83 %, far from the base. */
  learningRate: 8e-4,
  /** Completions printed before and after. */
  shown: 6,
  /** Steps between measurements of the distance from the base: each scores every sample once more. */
  klEverySteps: 10,
} as const;
