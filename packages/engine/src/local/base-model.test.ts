import type { TargetModule } from '@loopwright/protocol';
import { expectSameBits } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { executionPlan } from './plan.js';
import { tinyBase } from './testing/tiny-base.js';
import { crossEntropy, datum } from './testing/tiny-engine.js';
import { finish } from './testing/training.js';
import { TrainingSession } from './train/training-session.js';

const modules: readonly TargetModule[] = ['q_proj', 'k_proj', 'v_proj', 'o_proj'];
/** Every choice of them but none: 15 sets, with a program each. */
const sets = Array.from({ length: 15 }, (_, bits) => modules.filter((_, i) => ((bits + 1) >> i) % 2 === 1));

describe('programs of many sets of target modules', () => {
  it('are let go but for those used lately, and compiled again to the same bits', async () => {
    await using tiny = await tinyBase('llama-tied');
    const { base } = tiny;
    const gradientsOf = async (targetModules: readonly TargetModule[]) => {
      const training = { type: 'lora', rank: 2, alpha: 4, targetModules: [...targetModules] } as const;
      const plan = executionPlan(base.config, { threads: 1, packWeights: false }, training);
      const session = new TrainingSession(base, { name: 's', baseModel: 'm', training, seed: 1 }, { plan });
      await finish(session.pass({ type: 'forward-backward', data: [datum(3)], loss: crossEntropy }));
      return session.gradient!;
    };
    const first = await gradientsOf(sets[0]!);
    for (const set of sets) await gradientsOf(set);
    expect(base.programCount).toBe(8);
    const again = await gradientsOf(sets[0]!);
    for (const [name, values] of first) expectSameBits(again.get(name)!, values, name);

    // All at once: none goes while it runs.
    const together = await Promise.all(sets.map(gradientsOf));
    for (const [name, values] of first) expectSameBits(together[0]!.get(name)!, values, name);
    expect(base.programCount).toBe(8);
  });
});
