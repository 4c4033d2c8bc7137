import { readdirSync } from 'node:fs';
import { floatTensor, idTensor, type PassResult } from '@loopwright/protocol';
import {
  expectClose,
  expectSameBits,
  type FullExpected,
  fixturePath,
  type LoraBatch,
  type LoraExpected,
  type LossCase,
  loraAdapters,
  readFixtureJson,
  readFixtureTensors,
  type TinyModel,
  type TrainingExpected,
  tolerances,
} from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { tinyBase } from '../testing/tiny-base.js';
import { adam, crossEntropy, lossData, lossSpec } from '../testing/tiny-engine.js';
import { adapterSession, finish, forwardBackward, newSession, parameterName } from '../testing/training.js';
import { globalNorm } from './adamw.js';

function expectLoss(result: PassResult, expected: LossCase): void {
  const perDatum = expected.token_losses.map((losses) => losses.flat().map(Number));
  const magnitude = perDatum.flat().reduce((sum, loss) => sum + Math.abs(loss), 0);
  expectClose(result.lossSum, expected.loss_sum, tolerances.lossSum, { magnitude });
  result.outputs.forEach(({ loss, logprobs }, i) => {
    const sum = perDatum[i]!.reduce((a, b) => a + b, 0);
    expectClose(loss, sum, tolerances.lossSum, { magnitude, label: `datum ${i}` });
    expectClose(logprobs, expected.logprobs[i]!.flat().map(Number), tolerances.tinyLogprobs, { label: `datum ${i}` });
  });
}

const withLosses = loraAdapters.filter(
  (adapter) => readFixtureJson<LoraExpected>(`lora/${adapter}/expected.json`).losses !== undefined,
);

describe.each(withLosses)('losses on adapter %s', (adapter) => {
  const expected = readFixtureJson<LoraExpected>(`lora/${adapter}/expected.json`);
  const batch = readFixtureJson<LoraBatch>(`lora/${adapter}/batch.json`);

  it('give the sums, log-probs and every gradient of the reference', async () => {
    await using model = await tinyBase(expected.base_model.replace(/^.*\//, '') as TinyModel);
    const session = await adapterSession(model.base, adapter);
    // Every loss of llama-tied, two at most of the others.
    const kept = new Set(readdirSync(fixturePath(`lora/${adapter}/grads`)));
    const count = Object.keys(expected.losses!).length;
    expect(kept.size).toBe(adapter === 'llama-tied' ? count : Math.min(2, count));
    for (const [name, lossCase] of Object.entries(expected.losses!)) {
      const data = lossData(batch, name, lossCase);
      const forward = await finish(session.pass({ type: 'forward', data, loss: lossSpec(lossCase) }));
      expectLoss(forward, lossCase);
      expect(session.gradient).toBeUndefined();
      const result = await forwardBackward(session, data, lossSpec(lossCase));
      expectLoss(result, lossCase);
      if (kept.has(`${name}.safetensors`)) {
        const reference = await readFixtureTensors(`lora/${adapter}/grads/${name}.safetensors`);
        expect(session.gradient!.size).toBe(reference.size);
        for (const [peftName, { data: values }] of reference) {
          const gradient = session.gradient!.get(parameterName(peftName))!;
          expectClose(gradient, values, tolerances.gradient, { label: `${name} ${peftName}` });
        }
      }
      const norm = globalNorm(session.gradient!.values());
      expectClose(norm, lossCase.grad_norm, tolerances.gradientNorm, { label: name });
      session.clearGradient();
    }
  });
});

describe.each(['llama-tied', 'llama-untied', 'qwen2', 'qwen3', 'mistral', 'gemma3', 'granite'] as const)(
  'full training of %s',
  (name) => {
    it('gives the gradient of every weight', async () => {
      const expected = readFixtureJson<FullExpected>(`full/${name}.json`);
      await using model = await tinyBase(name);
      const session = newSession(model.base, { training: { type: 'full' } });
      const data = expected.datums.map((d) => ({
        modelInput: Int32Array.from(d.model_input),
        targetTokens: idTensor(Int32Array.from(d.target_tokens)),
        weights: floatTensor(Float32Array.from(d.weights)),
      }));
      const forward = await finish(session.pass({ type: 'forward', data, loss: crossEntropy }));
      const result = await forwardBackward(session, data, crossEntropy);
      const magnitude = expected.token_losses.flat().reduce((sum, loss) => sum + Math.abs(loss), 0);
      for (const { lossSum, outputs } of [forward, result]) {
        expectClose(lossSum, expected.loss_sum, tolerances.lossSum, { magnitude });
        for (const [i, { logprobs }] of outputs.entries())
          expectClose(logprobs, expected.logprobs[i]!, tolerances.tinyLogprobs);
      }
      const reference = await readFixtureTensors(`full/${name}.grads.safetensors`);
      const norms = new Map(Object.entries(expected.grad_norm_per_tensor));
      expect([...session.gradient!.keys()].sort()).toEqual([...norms.keys()].sort());
      for (const [weight, gradient] of session.gradient!) {
        const tolerance = { ...tolerances.gradientNorm, rel: 5e-5 };
        expectClose(globalNorm([gradient]), norms.get(weight)!, tolerance, { label: weight });
      }
      for (const [weight, { data: values }] of reference)
        expectClose(session.gradient!.get(weight)!, values, tolerances.gradient, { label: weight });
      // The base itself stays as it was while the session's copy moves.
      const before = model.base.weights.get('model.norm.weight')!.slice();
      await finish(session.optimStep(adam));
      expectSameBits(model.base.weights.get('model.norm.weight')!, before);
      expect(session.parameters.get('model.norm.weight')!.values[0]).not.toBe(before[0]);
    });
  },
);

describe.each(['llama-tied', 'qwen2', 'qwen3'] as const)('five steps on %s', (adapter) => {
  it('follow the reference', async () => {
    const expected = readFixtureJson<TrainingExpected>(`optim/train-${adapter}.json`);
    const batch = readFixtureJson<LoraBatch>(expected.batch);
    const { losses } = readFixtureJson<LoraExpected>(`lora/${adapter}/expected.json`);
    await using model = await tinyBase(adapter);
    const session = await adapterSession(model.base, adapter);
    for (const [i, step] of expected.steps.entries()) {
      const lossCase = losses![step.loss_fn] ?? { loss_fn: step.loss_fn, loss_fn_config: {}, uses_weights: false };
      const result = await forwardBackward(session, lossData(batch, step.loss_fn, lossCase), lossSpec(lossCase));
      expectClose(result.lossSum, step.loss_sum, tolerances.trainingLoss, { label: `loss of step ${i}` });
      const { gradNorm, step: taken } = await finish(session.optimStep(adam));
      expect(taken).toBe(i + 1);
      expectClose(gradNorm, step.grad_norm, { ...tolerances.gradientNorm, rel: 1e-4 }, { label: `norm of step ${i}` });
      expect(session.gradient).toBeUndefined();
    }
    const final = await readFixtureTensors(`optim/train-${adapter}.safetensors`);
    for (const [name, { values }] of session.parameters) {
      const stored = [...final].find(([key]) => parameterName(key.replace(/^.*?(?=base_model)/, '')) === name);
      expectClose(values, stored![1].data, tolerances.trainingParameter, { label: name });
    }
    const data = lossData(batch, 'cross_entropy', losses!.cross_entropy!);
    const after = await finish(session.pass({ type: 'forward', data, loss: crossEntropy }));
    expectClose(after.lossSum, expected.cross_entropy_loss_after_last_step, tolerances.trainingLoss);
  });
});
