import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expectSameBits, rejection, temporaryDirectory } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { type OptimizerState, readOptimizerState, writeOptimizerState } from './optimizer-state.js';

const shapes = new Map<string, readonly number[]>([
  ['layers.0.q_proj.A', [2, 3]],
  ['layers.0.q_proj.B', [4, 2]],
]);

function state(step: number): OptimizerState {
  const moments = [...shapes].map(([name, shape], i) => {
    const count = shape[0]! * shape[1]!;
    const expAvg = Float32Array.from({ length: count }, (_, k) => Math.sin(k + i + step));
    return [name, { shape, expAvg, expAvgSq: expAvg.map((value) => value * value) }] as const;
  });
  return { step, moments: new Map(moments) };
}

describe('optimizer state', () => {
  it('gives back step and moments, bit for bit', async () => {
    await using directory = await temporaryDirectory();
    const files = await writeOptimizerState(directory.path, state(7));
    expect([...files].sort()).toEqual((await readdir(directory.path)).sort());
    const read = await readOptimizerState(directory.path, { parameters: shapes });
    expect(read.step).toBe(7);
    for (const [name, { expAvg, expAvgSq }] of state(7).moments) {
      expectSameBits(read.moments.get(name)!.expAvg, expAvg, name);
      expectSameBits(read.moments.get(name)!.expAvgSq, expAvgSq, name);
    }
  });

  it('refuses moments of other parameters: another shape, one missing, one more', async () => {
    await using directory = await temporaryDirectory();
    await writeOptimizerState(directory.path, state(1));
    const read = (parameters: ReadonlyMap<string, readonly number[]>) =>
      rejection(readOptimizerState(directory.path, { parameters }));
    expect(await read(new Map([...shapes, ['layers.0.q_proj.A', [3, 2]]]))).toMatchObject({
      code: 'checkpoint_mismatch',
      details: { field: 'layers.0.q_proj.A', expected: 'shape [3, 2]', got: '[2, 3]' },
    });
    expect(await read(new Map([...shapes, ['lm_head.A', [1, 1]]]))).toMatchObject({
      code: 'checkpoint_mismatch',
      details: { field: 'lm_head.A' },
    });
    expect(await read(new Map([['layers.0.q_proj.A', [2, 3]]]))).toMatchObject({
      code: 'checkpoint_mismatch',
      details: { got: '2' },
    });
  });

  it('notices files of two saves put together, and another format version', async () => {
    await using one = await temporaryDirectory();
    await using two = await temporaryDirectory();
    await writeOptimizerState(one.path, state(1));
    await writeOptimizerState(two.path, state(2));
    await cp(join(one.path, 'optimizer.safetensors'), join(two.path, 'optimizer.safetensors'));
    const mixed = await rejection(readOptimizerState(two.path, { parameters: shapes }));
    expect(mixed).toMatchObject({ code: 'checkpoint_mismatch', details: { field: 'optimizer.safetensors: step' } });
    await writeFile(join(one.path, 'trainer_state.json'), JSON.stringify({ format_version: 99, step: 1 }));
    expect(await rejection(readOptimizerState(one.path, { parameters: shapes }))).toMatchObject({
      code: 'checkpoint_mismatch',
      details: { got: '99' },
    });
  });

  it('refuses a missing or cut file, a damaged step and a negative second moment', async () => {
    await using directory = await temporaryDirectory();
    const read = () => rejection(readOptimizerState(directory.path, { parameters: shapes }));
    expect(await read()).toMatchObject({ code: 'model_invalid', details: { field: 'trainer_state.json' } });
    const broken = state(1);
    broken.moments.get('layers.0.q_proj.B')!.expAvgSq[3] = -1;
    await writeOptimizerState(directory.path, broken);
    expect(await read()).toMatchObject({ code: 'model_invalid', details: { got: '-1 at position 3' } });
    const path = join(directory.path, 'optimizer.safetensors');
    await writeFile(path, (await readFile(path)).subarray(0, -1));
    expect(await read()).toMatchObject({ code: 'model_invalid', message: expect.stringContaining('cut short') });
    await writeFile(join(directory.path, 'trainer_state.json'), JSON.stringify({ format_version: 1, step: -1 }));
    expect(await read()).toMatchObject({ code: 'model_invalid', details: { field: 'trainer_state.json: step' } });
    expect(await rejection(writeOptimizerState(directory.path, state(-1)))).toMatchObject({ code: 'invalid_argument' });
  });
});
