/** An engine on a tiny model, with the calls that tests make in few words. */
import {
  type AdamParams,
  type Datum,
  floatTensor,
  idTensor,
  type LossSpec,
  type SamplingParams,
} from '@loopwright/protocol';
import {
  expectClose,
  type LoraBatch,
  type LoraBatchDatum,
  type LossCase,
  type TemporaryDirectory,
  type TinyModel,
  temporaryDirectory,
  tinyModelDirectory,
  tolerances,
} from '@loopwright/testkit';
import type { Engine, SampleRequest, SamplerWeights } from '../../engine.js';
import { LocalEngine, type LocalEngineOptions } from '../local-engine.js';

export interface TestEngine extends AsyncDisposable {
  readonly engine: LocalEngine;
  /** A new empty folder of the test's own. */
  folder(): string;
}

/** An engine of one thread on a tiny model, or on the model in `directory`; closed with its files at the end of the scope. */
export async function tinyEngine(
  model: TinyModel,
  { directory = tinyModelDirectory(model), ...options }: Partial<LocalEngineOptions> & { directory?: string } = {},
): Promise<TestEngine> {
  const temporary: TemporaryDirectory = await temporaryDirectory();
  const engine = await LocalEngine.load(
    { id: model, directory },
    { threads: 1, cacheDirectory: `${temporary.path}/cache`, ...options },
  );
  let folders = 0;
  return {
    engine,
    folder: () => `${temporary.path}/${folders++}`,
    [Symbol.asyncDispose]: async () => {
      await engine[Symbol.asyncDispose]();
      await temporary[Symbol.asyncDispose]();
    },
  };
}

export const base: SamplerWeights = { type: 'base' };

/** Temperature 1, no truncation, no stops, seed 1, 8 tokens. */
export function sampleRequest(
  prompt: ArrayLike<number>,
  {
    numSamples = 1,
    weights = base,
    promptLogprobs = false,
    topkPromptLogprobs = 0,
    ...params
  }: Partial<SamplingParams & Omit<SampleRequest, 'params' | 'prompt'>> = {},
): SampleRequest {
  return {
    prompt: Int32Array.from(prompt),
    numSamples,
    weights,
    promptLogprobs,
    topkPromptLogprobs,
    params: { maxTokens: 8, temperature: 1, topK: -1, topP: 1, seed: 1, stop: [], stopTokenIds: [], ...params },
  };
}

/** Tokens of a reproducible prompt; ids from 3 to 299, since 2 ends a sequence. */
export function prompt(length: number, seed = 0): Int32Array {
  return Int32Array.from({ length }, (_, i) => 3 + ((i * 7919 + seed * 104_729 + i * i * 31) % 297));
}

export const adam: AdamParams = {
  learningRate: 2e-3,
  beta1: 0.9,
  beta2: 0.95,
  eps: 1e-8,
  weightDecay: 0,
  gradClipNorm: 0,
  loraPlusLrRatio: 1,
};

export const crossEntropy: LossSpec = { name: 'cross_entropy' };

/** A cross_entropy datum over a reproducible sequence. */
export function datum(length: number, seed = 0): Datum {
  const ids = prompt(length + 1, seed);
  return {
    modelInput: ids.slice(0, length),
    targetTokens: idTensor(ids.slice(1)),
    weights: floatTensor(Float32Array.from({ length }, (_, i) => (i % 5 === 0 ? 0 : 1))),
  };
}

/** The loss of a fixture's case. */
export function lossSpec({
  loss_fn: name,
  loss_fn_config: config,
}: Pick<LossCase, 'loss_fn' | 'loss_fn_config'>): LossSpec {
  switch (name) {
    case 'cross_entropy':
    case 'importance_sampling':
      return { name };
    case 'ppo':
    case 'cispo': {
      const { clip_low_threshold: clipLowThreshold = 0.8, clip_high_threshold: clipHighThreshold = 1.2 } = config;
      return { name, clipLowThreshold, clipHighThreshold };
    }
    case 'dro':
      return { name, beta: config.beta ?? 0.05 };
    default:
      throw new Error(`no loss ${name}`);
  }
}

/** Datums of a fixture's batch for one of its cases. */
export function lossData(
  { datums }: LoraBatch,
  name: string,
  { uses_weights }: Pick<LossCase, 'uses_weights'>,
): Datum[] {
  const floats = (values: readonly number[]) => floatTensor(Float32Array.from(values));
  return datums.map((d: LoraBatchDatum): Datum => {
    const modelInput = Int32Array.from(d.model_input);
    if (name === 'cross_entropy_topk') {
      const shape = [modelInput.length, d.topk_target_tokens[0]!.length] as const;
      return {
        modelInput,
        targetTokens: idTensor(Int32Array.from(d.topk_target_tokens.flat()), shape),
        weights: floatTensor(Float32Array.from(d.topk_weights.flat()), shape),
      };
    }
    return {
      modelInput,
      targetTokens: idTensor(Int32Array.from(d.target_tokens)),
      ...(uses_weights ? { weights: floats(d.weights) } : {}),
      advantages: floats(d.advantages),
      logprobs: floats(d.logprobs),
    };
  });
}

/** Checks that a sampled logprob is the one that scoring the whole sequence gives. */
export async function expectSampledAsScored(engine: Engine, request: SampleRequest): Promise<void> {
  const { sequences } = await engine.sample(request);
  for (const { tokens, logprobs } of sequences) {
    const whole = Int32Array.from([...request.prompt, ...tokens]);
    const scored = await engine.computeLogprobs({ prompt: whole, weights: request.weights });
    expectClose(logprobs, scored.logprobs.subarray(request.prompt.length), tolerances.trainerVersusSampler);
  }
}
