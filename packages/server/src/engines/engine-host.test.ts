/** Which sessions share an engine. */
import { FakeEngine, tinyModelDirectory } from '@loopwright/testkit';
import { expect, it } from 'vitest';
import { ModelRegistry } from '../models/model-registry.js';
import { EngineHost, type EnginePlan, enginePlanOf } from './engine-host.js';

it('makes an engine for each precision of sampling: a session that goes on keeps what its plan says', async () => {
  const made: EnginePlan[] = [];
  const host = new EngineHost({
    models: new ModelRegistry({
      models: [{ id: 'm', directory: tinyModelDirectory('llama-tied') }],
      allowPaths: false,
    }),
    create: async (_card, { onExit, ...plan }) => {
      made.push(plan);
      return new FakeEngine({ onExit });
    },
    plan: { threads: 2, device: 'cpu', samplerPrecision: 'int8' },
  });
  try {
    const ofNew = await host.engine('m');
    const recorded = { threads: 2, device: 'cpu' } as const;
    expect(await host.engine('m', enginePlanOf({ ...recorded, samplerPrecision: 'int8' }))).toBe(ofNew);
    const older = await host.engine('m', enginePlanOf(recorded));
    expect(older).not.toBe(ofNew);
    expect(await host.engine('m', enginePlanOf({ ...recorded, samplerPrecision: 'float32' }))).toBe(older);
    expect(made.map(({ samplerPrecision }) => samplerPrecision)).toEqual(['int8', 'float32']);
  } finally {
    await host.close();
  }
});
