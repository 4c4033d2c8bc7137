/** What the loops need of a client: the real ones fit, and so does anything of the same shape. */
import type {
  CallOptions,
  CustomDatum,
  CustomLoss,
  CustomPassOutput,
  ForwardBackwardOutput,
  LossConfigFor,
  OptimStepOptions,
  OptimStepOutput,
  SampleOptions,
  SampleOutput,
} from '@loopwright/client';
import type { DatumFor, LossName, TrainingSpec } from '@loopwright/protocol';
import type { Tokenizer } from '@loopwright/text';

/** Draws samples of one set of weights. A `SamplingClient` is one. */
export interface Sampler {
  sample(prompt: readonly number[], options?: SampleOptions): PromiseLike<SampleOutput>;
}

/** Scores tokens under one set of weights. A `SamplingClient` is one. */
export interface Scorer {
  computeLogprobs(prompt: readonly number[], options?: CallOptions): PromiseLike<(number | null)[]>;
}

/** Trains. A `TrainingClient` is one: calls are queued at once and take effect in call order. */
export interface Trainer {
  /** An adapter or every weight; the guard takes one that doesn't say for `lora`. */
  readonly trainingType?: TrainingSpec['type'];
  getTokenizer(): Promise<Tokenizer>;
  forward<L extends LossName>(
    data: readonly DatumFor<NoInfer<L>>[],
    loss: L,
    config?: LossConfigFor<NoInfer<L>>,
    options?: CallOptions,
  ): PromiseLike<ForwardBackwardOutput>;
  forwardBackward<L extends LossName>(
    data: readonly DatumFor<NoInfer<L>>[],
    loss: L,
    config?: LossConfigFor<NoInfer<L>>,
    options?: CallOptions,
  ): PromiseLike<ForwardBackwardOutput>;
  /** Only some options need it: a loss that holds the model to a reference. */
  forwardBackwardCustom?<D extends CustomDatum>(
    data: readonly D[],
    loss: CustomLoss<D>,
    options?: CallOptions,
  ): PromiseLike<CustomPassOutput>;
  optimStep(options?: OptimStepOptions): PromiseLike<OptimStepOutput>;
  saveWeightsAndGetSamplingClient(options?: CallOptions): Promise<Sampler>;
}
