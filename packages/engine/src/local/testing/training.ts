/** Training sessions on tiny models without an engine around them: tests look at gradients, which the engine does not hand out. */
import type { Datum, LossSpec, PassResult } from '@loopwright/protocol';
import { type LoraAdapter, loraAdapterDirectory } from '@loopwright/testkit';
import type { ExecutionPlan } from '../../engine.js';
import type { BaseModel } from '../base-model.js';
import { loadSession } from '../checkpoint.js';
import { executionPlan } from '../plan.js';
import type { Slices } from '../slices.js';
import { TrainingSession } from '../train/training-session.js';

const lora = { type: 'lora', rank: 8, alpha: 16, targetModules: ['q_proj', 'v_proj'] } as const;

export function newSession(
  base: BaseModel,
  { training = lora, plan = {} }: { training?: typeof lora | { type: 'full' }; plan?: Partial<ExecutionPlan> } = {},
): TrainingSession {
  const full = { ...executionPlan(base.config, { threads: 1 }, training), ...plan };
  return new TrainingSession(base, { name: 's', baseModel: base.card.id, training, seed: 1 }, { plan: full });
}

/** A session that starts from a fixture's adapter; weights are packed, as they are for adapters of every layer. */
export async function adapterSession(base: BaseModel, adapter: LoraAdapter, plan: Partial<ExecutionPlan> = {}) {
  const session = newSession(base, { plan: { packWeights: true, ...plan } });
  await loadSession(session, base, { directory: loraAdapterDirectory(adapter), loadOptimizer: false });
  return session;
}

/** Runs slices to their result. */
export async function finish<T>(slices: Slices<T>): Promise<T> {
  for (;;) {
    const next = await slices.next();
    if (next.done === true) return next.value;
  }
}

export const forwardBackward = (
  session: TrainingSession,
  data: readonly Datum[],
  loss: LossSpec,
): Promise<PassResult> => finish(session.pass({ type: 'forward-backward', data, loss }));

/** `layers.0.q_proj.lora_A` from PEFT's name of it. */
export function parameterName(peftName: string): string {
  return peftName
    .replace(/^base_model\.model\.(model\.)?/, '')
    .replace(/\.(self_attn|mlp)\./, '.')
    .replace(/\.weight$/, '');
}
