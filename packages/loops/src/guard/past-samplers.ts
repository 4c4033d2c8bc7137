/** Which samplers a process has seen, and how many optimizer steps there had been when each was first used. */
import type { Observation } from './observation.js';

export interface PastSamplers {
  /** Optimizer steps before the first use of a sampler. Holds no sampler alive. */
  readonly seenAt: WeakMap<object, number>;
  readonly first: WeakRef<object> | undefined;
}

export function rememberSampler(
  past: PastSamplers,
  { facts: { sampler } }: Observation,
  updates: number,
): PastSamplers {
  if (sampler === undefined || past.seenAt.has(sampler)) return past;
  past.seenAt.set(sampler, updates);
  return { ...past, first: past.first ?? new WeakRef(sampler) };
}
