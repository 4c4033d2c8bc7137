/** Operations that the tests submit. */
import { floatTensor, idTensor, type TrainingOperation } from '@loopwright/protocol';

type PassType = 'forward' | 'forward-backward';

export function pass(tokens: readonly number[] = [5, 6, 7], type: PassType = 'forward-backward'): TrainingOperation {
  const length = tokens.length;
  return {
    type,
    loss: { name: 'cross_entropy' },
    data: [
      {
        modelInput: Int32Array.from(tokens),
        targetTokens: idTensor(Int32Array.from(tokens, (token) => (token + 1) % 64)),
        weights: floatTensor(new Float32Array(length).fill(1)),
      },
    ],
  };
}

export function step(learningRate = 1e-4): TrainingOperation {
  const adam = { beta1: 0.9, beta2: 0.999, eps: 1e-8, weightDecay: 0.01, gradClipNorm: 0, loraPlusLrRatio: 1 };
  return { type: 'optim-step', adam: { learningRate, ...adam } };
}

export const saveState: TrainingOperation = { type: 'save-state', description: '' };

export function saveWeights(ttlSeconds: number | null = null): TrainingOperation {
  return { type: 'save-weights', merge: false, description: '', ttlSeconds };
}
