/** The captured JSON of the published SDK, read and written. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { JsonObject } from '../checks.js';
import { arnMap } from './arn.js';
import { decodeControlRequest } from './control-schemas.js';
import { decodeSamplingRequest, encodeSamplingRequest } from './sampling-operation.js';
import { decodeSamplingResult, encodeSamplingResult, type SamplingResult } from './sampling-result.js';
import { encodeCreateTrainingSession, sessionRequest } from './session-spec.js';
import { decodeTrainingRequest, encodeTrainingRequest } from './training-operation.js';
import { decodeTrainingResult, encodeTrainingResult, type TrainingResult } from './training-result.js';

function golden(name: string): Record<string, JsonObject> {
  const text = readFileSync(new URL(`golden/${name}.json`, import.meta.url), 'utf8');
  return JSON.parse(text) as Record<string, JsonObject>; // files of ours
}
const requests = golden('requests');
const results = golden('results');
const arns = arnMap({ partition: 'aws', region: 'us-west-2', account: '123456789012' });
const overTheWire = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

test('a captured ppo pass decodes with the thresholds of this wire', () => {
  const { sequenceNumber, clientToken, operation } = decodeTrainingRequest(requests.forwardBackward, { arns });
  expect(sequenceNumber).toBe(1);
  expect(clientToken).toBe('a11e6b7b-0d28-4cc8-af6d-830d265a8cf9');
  expect(operation).toEqual({
    type: 'forward-backward',
    loss: { name: 'ppo', clipLowThreshold: 0.8, clipHighThreshold: 1.2 },
    data: [
      {
        modelInput: Int32Array.of(50, 43, 50),
        targetTokens: { dtype: 'int32', shape: [3], data: Int32Array.of(43, 50, 61) },
        weights: { dtype: 'float32', shape: [3], data: Float32Array.of(0, 1, 1) },
        advantages: { dtype: 'float32', shape: [3], data: Float32Array.of(0, -1.25, -1.25) },
        logprobs: { dtype: 'float32', shape: [3], data: Float32Array.of(0, -2.5, -0.5) },
      },
    ],
  });
});

test('a captured optimizer step decodes with clip and LoRA+ off', () => {
  const { operation } = decodeTrainingRequest(requests.optimizerStep, { arns });
  expect(operation).toEqual({
    type: 'optim-step',
    adam: {
      learningRate: 0.001,
      beta1: 0.9,
      beta2: 0.999,
      eps: 1e-8,
      weightDecay: 0.01,
      gradClipNorm: 0,
      loraPlusLrRatio: 1,
    },
  });
});

test.each(['saveWeights', 'saveMerged', 'saveState', 'loadState'])('%s is written as it was captured', (name) => {
  expect(encodeTrainingRequest(decodeTrainingRequest(requests[name], { arns }), { arns })).toEqual(requests[name]);
});

test.each(['sampleAll', 'computeLogprobs', 'loadWeights'])('%s keeps every member on its way through', (name) => {
  const written = encodeSamplingRequest(decodeSamplingRequest(requests[name], { arns }), { arns });
  expect(decodeSamplingRequest(overTheWire(written), { arns })).toEqual(
    decodeSamplingRequest(requests[name], { arns }),
  );
});

test('a captured sample asks for the latest weights and keeps its seed', () => {
  expect(decodeSamplingRequest(requests.sample, { arns })).toEqual({
    type: 'sample',
    prompt: Int32Array.of(50, 43, 50, 61),
    numSamples: 4,
    params: { maxTokens: 512, temperature: 0.7, topK: -1, topP: 0.9, seed: 0, stop: [], stopTokenIds: [] },
    weights: { type: 'latest' },
    promptLogprobs: false,
    topkPromptLogprobs: 0,
  });
});

test('a pass comes out of encode and decode as it went in', () => {
  const request = decodeTrainingRequest(requests.forwardBackward, { arns });
  expect(decodeTrainingRequest(overTheWire(encodeTrainingRequest(request, { arns })), { arns })).toEqual(request);
});

const trainingResults: Record<string, TrainingResult> = {
  forwardBackward: {
    type: 'forward-backward',
    result: {
      outputs: [
        { logprobs: Float32Array.of(-8.5, -0.25), loss: 3.5 },
        { logprobs: Float32Array.of(-1.5), loss: 0.5 },
      ],
      lossSum: 4,
      metrics: { 'ratio/mean': 1 },
      trainingTokens: 3,
    },
  },
  optimizerStep: { type: 'optim-step', result: { step: 4, gradNorm: 194.5, metrics: { 'optim/lr': 0.001 } } },
  saveWeights: { type: 'save-weights', result: { version: 'lw/1' } },
  saveState: { type: 'save-state', result: { version: 'lw/4' } },
  loadState: { type: 'load-state', result: {} },
};

test.each(Object.entries(trainingResults))('the result of %s is written as captured and read back', (name, done) => {
  const body = encodeTrainingResult(done, { arns });
  expect(body).toEqual(results[name]);
  expect(decodeTrainingResult(overTheWire(body), done.type, { arns })).toMatchObject({
    status: 'Completed',
    result: done.type === 'forward-backward' ? { ...done.result, metrics: { loss: 2 } } : done.result,
  });
});

const samplingResults: Record<string, SamplingResult> = {
  sample: {
    type: 'sample',
    result: {
      sequences: [
        { tokens: Int32Array.of(104, 159), logprobs: Float32Array.of(-4.125, -6.5), stopReason: 'stop' },
        { tokens: Int32Array.of(7), logprobs: Float32Array.of(-0.5), stopReason: 'length' },
      ],
      promptLogprobs: Float32Array.of(Number.NaN, -3.125, -4.5),
      topkPromptLogprobs: [
        [],
        [
          { tokenId: 112, logprob: -1.5 },
          { tokenId: 102, logprob: -2.25 },
        ],
        [
          { tokenId: 1, logprob: -0.5 },
          { tokenId: 2, logprob: -3.25 },
        ],
      ],
      prefillTokens: 3,
    },
  },
  computeLogprobs: {
    type: 'compute-logprobs',
    result: { logprobs: Float32Array.of(Number.NaN, -3.125, -4.5), prefillTokens: 3 },
  },
  loadWeights: { type: 'load-weights', result: {} },
};

test.each(Object.entries(samplingResults))('the result of %s is written as captured and read back', (name, done) => {
  const body = encodeSamplingResult(done);
  expect(body).toEqual(results[name]);
  expect(decodeSamplingResult(overTheWire(body), done.type)).toEqual({ status: 'Completed', result: done.result });
});

test('a captured create request passes, and ours says the same plus the extension', () => {
  const captured = decodeControlRequest('CreateTrainingSession', requests.createTrainingSession);
  const asked = sessionRequest(captured);
  expect(asked.baseModel).toEqual({ hub: 'SageMakerPublicHub', name: 'loopwright-tiny-bigram', version: '1.0.0' });
  expect(asked.training).toMatchObject({ type: 'lora', rank: 8, alpha: 16 });
  const ours = encodeCreateTrainingSession({
    name: 'canon-1',
    baseModelArn: captured.ModelConfig.BaseModelArn,
    training: { type: 'full' },
    seed: 7,
  });
  const again = sessionRequest(decodeControlRequest('CreateTrainingSession', overTheWire(ours)));
  expect(again).toMatchObject({ name: 'canon-1', training: { type: 'full' }, seed: 7 });
});
