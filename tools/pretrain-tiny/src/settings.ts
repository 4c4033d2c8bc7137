/** The settings the bundled model was made with: the one place. */
import type { CorpusOptions } from './corpus.js';
import type { Schedule } from './schedule.js';

export interface PretrainingSettings {
  /** Of the initial weights and of the corpus. */
  readonly seed: number;
  readonly corpus: Omit<CorpusOptions, 'seed'>;
  readonly schedule: Schedule;
  readonly optimizer: {
    readonly beta1: number;
    readonly beta2: number;
    readonly eps: number;
    readonly weightDecay: number;
    readonly gradClipNorm: number;
  };
}

export const pretrainingSettings: PretrainingSettings = {
  seed: 1,
  corpus: { forgottenCarries: 0.55, unanswered: 0.3, batchSize: 64, chatEvery: 8 },
  // Above 2e-3 it stays on the plateau where the last digit is a guess.
  schedule: { steps: 5000, warmupSteps: 100, peak: 1.5e-3, final: 3e-5 },
  optimizer: { beta1: 0.9, beta2: 0.99, eps: 1e-8, weightDecay: 0.01, gradClipNorm: 1 },
};
