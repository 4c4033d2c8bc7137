/** What a sampler is bound to: a model and an adapter, immutable. */

import { defaultTargetModules } from '@loopwright/protocol';
import type { AdapterWeights } from '../../formats/adapter.js';
import { linearModules } from '../models/weight-names.js';
import type { Feeds } from '../ort/runtime.js';
import { adapterInput } from '../train/training-graph.js';
import { type FusedAdapter, fuseAdapter } from './fused-adapter.js';
import type { InferenceModel } from './inference-model.js';

export class Snapshot {
  readonly model: InferenceModel;
  readonly fused: FusedAdapter;
  /** A and B (scaled) of every linear layer but the head, by the names that sequence programs use; empty without an adapter. */
  readonly sequence: Feeds;

  constructor(model: InferenceModel, adapter: AdapterWeights | undefined) {
    this.model = model;
    this.fused = fuseAdapter(model.config, adapter, model.tensors);
    this.sequence = {};
    if (adapter === undefined) return;
    const { rank, scale } = adapter;
    for (const { key, inFeatures, outFeatures } of linearModules(model.config, defaultTargetModules)) {
      const pair = adapter.tensors.get(key);
      this.sequence[adapterInput(key, 'A')] = model.tensors.float(pair?.A ?? new Float32Array(rank * inFeatures), [
        rank,
        inFeatures,
      ]);
      this.sequence[adapterInput(key, 'B')] = model.tensors.float(
        pair === undefined ? new Float32Array(rank * outFeatures) : pair.B.map((b) => b * scale),
        [outFeatures, rank],
      );
    }
  }
}
