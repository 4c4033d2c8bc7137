/** Scores of another model, and distillation from it. */
import { describe, expect, it, vi } from 'vitest';
import { rlDatum } from '../datums/rl-datum.js';
import { sftDatum } from '../datums/sft-datum.js';
import type { Scorer } from '../training/clients.js';
import { distillationData } from './distillation.js';
import { preferenceData } from './preference-data.js';
import { withReference } from './reference.js';

/** Its log-probability of a token is minus the token, whatever came before. */
const scorer: Scorer = {
  computeLogprobs: async (tokens) => tokens.map((token, i) => (i === 0 ? null : -token)),
};

describe('withReference', () => {
  it('adds one log-probability per target, and leaves the rest as it was', async () => {
    const data = preferenceData([{ prompt: [1, 2], chosen: [3, 4], rejected: [5] }]).map((datum, pair) => ({
      ...datum,
      pair,
    }));
    const scored = await withReference(data, scorer);
    expect(scored).toEqual(
      data.map((datum, i) => ({
        ...datum,
        lossFnInputs: {
          ...datum.lossFnInputs,
          refLogProb: [
            [-2, -3, -4],
            [-2, -5],
          ][i],
        },
      })),
    );
    expect(data[0]?.lossFnInputs).not.toHaveProperty('refLogProb');
  });

  it('asks for all at once, and cancels the others when one fails', async () => {
    const signals: AbortSignal[] = [];
    const failing: Scorer = {
      computeLogprobs: (tokens, { signal } = {}) => {
        signals.push(signal!);
        if (tokens[0] === 3) return Promise.reject(new Error('gone'));
        return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
      },
    };
    const data = [1, 2, 3].map((first) => sftDatum({ prompt: [first], completion: [9] }));
    await expect(withReference(data, failing)).rejects.toThrow('gone');
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, false]); // the third has ended
  });

  it('stops when its caller does', async () => {
    const compute = vi.fn(scorer.computeLogprobs);
    const data = [sftDatum({ prompt: [1], completion: [2] })];
    const stopped = withReference(data, { computeLogprobs: compute }, { signal: AbortSignal.abort() });
    await expect(stopped).rejects.toMatchObject({ code: 'cancelled' });
    expect(compute).not.toHaveBeenCalled();
  });

  it('refuses targets that are not the input shifted by one', async () => {
    const datum = { modelInput: [1, 2], lossFnInputs: { targetTokens: [3, 4], weights: [1, 1] } };
    await expect(withReference([sftDatum({ prompt: [1], completion: [2] }), datum], scorer)).rejects.toThrow(
      'data[1].lossFnInputs.targetTokens: expected the model input without its first token',
    );
  });
});

describe('distillationData', () => {
  it('gives each sampled token the log-ratio of teacher and student, prompts none', async () => {
    const sequence = { tokens: [3, 4], logprobs: [-1, -6] };
    const [datum] = await distillationData([{ prompt: [1, 2], sequence }], { teacher: scorer, coefficient: 2 });
    expect(datum).toEqual({
      ...rlDatum({ prompt: [1, 2], sequence, advantage: [-4, 4] }),
      lossFnInputs: {
        ...rlDatum({ prompt: [1, 2], sequence, advantage: [-4, 4] }).lossFnInputs,
        refLogProb: [-2, -3, -4],
      },
    });
  });

  it('in the mean has the gradient of KL(student ‖ teacher)', async () => {
    const teacher = [0.1, 0.2, 0.3, 0.4];
    const softmax = (logits: readonly number[]) => {
      const powers = logits.map(Math.exp);
      return powers.map((power) => power / powers.reduce((sum, each) => sum + each, 0));
    };
    const divergence = (logits: readonly number[]) =>
      softmax(logits).reduce((sum, p, a) => sum + p * Math.log(p / teacher[a]!), 0);
    const logits = [0.5, -0.2, 0.9, 0.1];
    const student = softmax(logits);
    const samples = student.map((p, a) => ({ prompt: [7], sequence: { tokens: [a], logprobs: [Math.log(p)] } }));
    const data = await distillationData(samples, {
      teacher: { computeLogprobs: async ([, a]) => [null, Math.log(teacher[a!]!)] },
    });
    // Importance sampling at ratio 1: the slope by the log-probability of the sampled token is −A.
    const slopes = data.map(({ lossFnInputs }) => -Number(lossFnInputs.advantages[0]));
    for (const [j] of logits.entries()) {
      const gradient = student.reduce((sum, p, a) => sum + p * slopes[a]! * ((a === j ? 1 : 0) - student[j]!), 0);
      const at = (by: number) => divergence(logits.map((logit, i) => (i === j ? logit + by : logit)));
      expect(gradient).toBeCloseTo((at(1e-6) - at(-1e-6)) / 2e-6, 8);
    }
  });
});
