/** Tables of the rotary position embedding (arXiv:2104.09864), with the frequency scaling of Llama 3. */
import type { Graph, RotaryTables, Value } from '@loopwright/graph';
import type { ModelConfig } from './config.js';

/** Tables end at a multiple of this, so that they hold the padding of a sequence as long as the context; lengths are padded to 16, or few times that. */
const tableMultiple = 64;

export interface RopeTables {
  /** [positions, headDim/2], row-major. */
  readonly cos: Float32Array;
  readonly sin: Float32Array;
  readonly positions: number;
}

/** Angular frequencies by pair of dimensions, length headDim/2. */
export function ropeFrequencies({
  headDim,
  ropeTheta,
  ropeScaling,
}: Pick<ModelConfig, 'headDim' | 'ropeTheta' | 'ropeScaling'>): Float64Array {
  const half = headDim / 2;
  const frequencies = Float64Array.from({ length: half }, (_, i) => ropeTheta ** (-i / half));
  if (ropeScaling === null) return frequencies;
  const { factor, lowFreqFactor, highFreqFactor, originalContext } = ropeScaling;
  return frequencies.map((frequency) => {
    const wavelength = (2 * Math.PI) / frequency;
    if (wavelength < originalContext / highFreqFactor) return frequency;
    if (wavelength > originalContext / lowFreqFactor) return frequency / factor;
    const smooth = (originalContext / wavelength - lowFreqFactor) / (highFreqFactor - lowFreqFactor);
    return ((1 - smooth) * frequency) / factor + smooth * frequency;
  });
}

/** Cosines and sines for positions 0 to `positions` − 1. */
export function ropeTables(
  config: Pick<ModelConfig, 'headDim' | 'ropeTheta' | 'ropeScaling'>,
  positions: number,
): RopeTables {
  const frequencies = ropeFrequencies(config);
  const half = frequencies.length;
  const cos = new Float32Array(positions * half);
  const sin = new Float32Array(positions * half);
  for (let p = 0; p < positions; p++) {
    for (let i = 0; i < half; i++) {
      const angle = p * frequencies[i]!;
      cos[p * half + i] = Math.cos(angle);
      sin[p * half + i] = Math.sin(angle);
    }
  }
  return { cos, sin, positions };
}

/** The tables of each layer as constants of a graph: sliding layers may have a base of their own. @param positions int64 [B, S] */
export function layerRotary(graph: Graph, config: ModelConfig, positions: Value): (layer: number) => RotaryTables {
  const half = config.headDim / 2;
  const tablesOf = (rope: Pick<ModelConfig, 'headDim' | 'ropeTheta' | 'ropeScaling'>): RotaryTables => {
    const rows = Math.ceil(config.contextLength / tableMultiple) * tableMultiple;
    const { cos, sin, positions: count } = ropeTables(rope, rows);
    return { positions, cos: graph.constant(cos, [count, half]), sin: graph.constant(sin, [count, half]) };
  };
  const { slidingWindow: window } = config;
  const everywhere = tablesOf(config);
  if (window === null || window.ropeTheta === config.ropeTheta) return () => everywhere;
  const sliding = tablesOf({ headDim: config.headDim, ropeTheta: window.ropeTheta, ropeScaling: null });
  return (layer) => (window.layers[layer] === true ? sliding : everywhere);
}
