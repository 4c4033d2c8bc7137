import { type Datum, floatTensor, idTensor, type LossSpec } from '@loopwright/protocol';
import { expectClose, tolerances } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { tinyBase } from '../testing/tiny-base.js';
import { crossEntropy, prompt } from '../testing/tiny-engine.js';
import { adapterSession, forwardBackward, newSession } from '../testing/training.js';

/** Five answers to each of two prompts, with what every loss reads. */
function answersToTwoPrompts(): Datum[] {
  const floats = (data: readonly number[]) => floatTensor(Float32Array.from(data));
  return [3, 9, 5, 1, 12].flatMap((length, answer) =>
    [0, 1].map((group): Datum => {
      const ids = Int32Array.from([...prompt(21 + 10 * group, group), ...prompt(length, 9 + answer)]);
      const sampled = Array.from(ids.slice(1), (_, i) => (i < 20 + 10 * group ? 0 : 1));
      return {
        modelInput: ids.slice(0, -1),
        targetTokens: idTensor(ids.slice(1)),
        weights: floats(sampled),
        advantages: floats(sampled.map((s, i) => s * Math.sin(i + answer))),
        logprobs: floats(sampled.map((s, i) => s * (-5.5 + 0.3 * Math.cos(i * answer)))),
      };
    }),
  );
}

describe('the pending gradient', () => {
  it('and the outputs are the same whether datums of one prompt share it or not', async () => {
    await using model = await tinyBase('qwen3');
    const data = answersToTwoPrompts();
    for (const loss of [
      crossEntropy,
      { name: 'importance_sampling' },
      { name: 'ppo', clipLowThreshold: 0.8, clipHighThreshold: 1.2 },
      { name: 'cispo', clipLowThreshold: 0.8, clipHighThreshold: 1.2 },
      { name: 'dro', beta: 0.05 },
    ] satisfies LossSpec[]) {
      const run = async (sharePrefixes: boolean) => {
        const session = await adapterSession(model.base, 'qwen3', { sharePrefixes });
        const result = await forwardBackward(session, data, loss);
        return { result, gradient: session.gradient! };
      };
      const [apart, shared] = [await run(false), await run(true)];
      data.forEach(({ modelInput }, i) => {
        const [a, b] = [shared.result.outputs[i]!, apart.result.outputs[i]!];
        expect(a.logprobs).toHaveLength(modelInput.length);
        expectClose(a.logprobs, b.logprobs, tolerances.tinyLogprobs, { label: loss.name });
        expectClose(a.loss, b.loss, tolerances.lossSum, { label: loss.name, magnitude: Math.abs(b.loss) + 1 });
      });
      for (const [name, values] of apart.gradient)
        expectClose(shared.gradient.get(name)!, values, tolerances.gradient, { label: `${loss.name} ${name}` });
    }
  });

  it('and so it is where layers see a window of tokens alone', async () => {
    await using model = await tinyBase('gemma3');
    const data = answersToTwoPrompts();
    const run = async (sharePrefixes: boolean) => {
      const session = newSession(model.base, { training: { type: 'full' }, plan: { sharePrefixes } });
      const result = await forwardBackward(session, data, crossEntropy);
      return { result, gradient: session.gradient! };
    };
    const [apart, shared] = [await run(false), await run(true)];
    data.forEach((_, i) => {
      const [a, b] = [shared.result.outputs[i]!, apart.result.outputs[i]!];
      expectClose(a.logprobs, b.logprobs, tolerances.tinyLogprobs);
    });
    for (const [name, values] of apart.gradient)
      expectClose(shared.gradient.get(name)!, values, tolerances.gradient, { label: name });
  });
});
