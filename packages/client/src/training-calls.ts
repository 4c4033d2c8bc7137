/** Options and results of the calls of a training client. */
import type { PassResult } from '@loopwright/protocol';
import type { CallOptions } from './transport.js';

/** How long weights live that were saved only to sample from: longer than any step should take. */
export const ephemeralTtlSeconds = 14_400;

export interface ForwardBackwardOutput {
  /** One per datum, in input order. `logprobs` has one value per target token (flat, N or N·K); `loss` is the datum's sum. */
  readonly outputs: readonly { readonly logprobs: number[]; readonly loss: number }[];
  /** Of the engine, plus `loss/sum` (over tokens and datums) and `loss/mean` (per datum). */
  readonly metrics: Readonly<Record<string, number>>;
  /** Tokens of all model inputs. */
  readonly trainingTokens: number;
}

export interface OptimStepOptions extends CallOptions {
  /** Above 0, at most 0.01; default 1e-4. */
  readonly learningRate?: number;
  /** Default 0.9. */
  readonly beta1?: number;
  /** Default 0.999. */
  readonly beta2?: number;
  /** Default 1e-8. */
  readonly eps?: number;
  /** Decoupled; default 0.01. */
  readonly weightDecay?: number;
  /** Global norm; default 0, off. */
  readonly gradClipNorm?: number;
  /** B matrices step at learningRate × this; default 1. */
  readonly loraPlusLrRatio?: number;
}

export interface OptimStepOutput {
  /** `optim/grad_norm` (before clipping), `optim/lr`, `optim/step` (from 1) and what the engine adds. */
  readonly metrics: Readonly<Record<string, number>>;
}

export interface SaveOptions extends CallOptions {
  /** 1024 characters at most. */
  readonly description?: string;
}

export interface SaveWeightsOptions extends SaveOptions {
  /** Save the whole model with the adapter folded in, besides; default false. */
  readonly mergeWeights?: boolean;
  /** The version expires after this long; default never. */
  readonly ttlSeconds?: number;
}

export interface SavedVersion {
  readonly modelPackageArn: string;
}

/** What callers see of a pass. */
export function passOutput({ outputs, lossSum, metrics, trainingTokens }: PassResult): ForwardBackwardOutput {
  return {
    outputs: outputs.map(({ logprobs, loss }) => ({ logprobs: Array.from(logprobs), loss })),
    metrics: { ...metrics, 'loss/sum': lossSum, 'loss/mean': lossSum / Math.max(1, outputs.length) },
    trainingTokens,
  };
}
