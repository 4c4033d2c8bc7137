/** The settings of the recipe, by the size of the model: everything that its numbers depend on, save seed, model and data. */
export interface Settings {
  readonly rank: number;
  readonly alpha: number;
  /** Problems of the test set to be judged by, the first of its order by seed 0. */
  readonly heldOut: number;
  /** New tokens of an answer at most. */
  readonly maxTokens: number;
  /** Stage 1: supervised, on worked answers. */
  readonly sft: {
    readonly steps: number;
    readonly batchSize: number;
    readonly learningRate: number;
    /** Longer rows are left out, and counted. */
    readonly maxRowTokens: number;
  };
  /** Stage 2: by reward, from what stage 1 saved. */
  readonly rl: {
    readonly steps: number;
    /** P, problems of a step. */
    readonly groupsPerStep: number;
    /** G, answers to each. */
    readonly groupSize: number;
    readonly learningRate: number;
  };
}

export const configs = {
  /** For a model of 135 million parameters on two cores: it shows that both stages run, and is far too short to teach reasoning. */
  small: {
    ...{ rank: 16, alpha: 32, heldOut: 40, maxTokens: 128 },
    sft: { steps: 10, batchSize: 8, learningRate: 2e-4, maxRowTokens: 320 },
    rl: { steps: 3, groupsPerStep: 4, groupSize: 4, learningRate: 5e-5 },
  },
  /** For a model of billions, on a server with accelerators. */
  big: {
    ...{ rank: 32, alpha: 64, heldOut: 1319, maxTokens: 512 },
    sft: { steps: 200, batchSize: 32, learningRate: 1e-4, maxRowTokens: 1024 },
    rl: { steps: 10, groupsPerStep: 40, groupSize: 8, learningRate: 4e-5 },
  },
} as const satisfies Readonly<Record<string, Settings>>;
