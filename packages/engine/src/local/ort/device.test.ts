/** Devices: what is missing is told in one sentence before anything is loaded. */
import { asLoopwrightError } from '@loopwright/protocol';
import { rejection } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { devices, devicesOn, requireDeviceName } from '../../devices.js';
import { tinyEngine } from '../testing/tiny-engine.js';
import { requireDevice } from './device.js';

describe('a device', () => {
  it('that no package of the runtime has for this host is refused with where there is one', async () => {
    const absent = devices.filter((device) => !devicesOn().includes(device));
    expect(absent.length).toBeGreaterThan(0); // no host has all of them
    for (const device of absent) {
      expect(await rejection(requireDevice(device))).toMatchObject({
        code: 'device_unavailable',
        details: {
          field: 'device',
          expected: expect.stringContaining(`${device}, which needs`),
          got: `${process.platform} ${process.arch}, where the runtime has none`,
          remedy: expect.stringContaining('leave the device out'),
        },
      });
    }
  });

  it.runIf(devicesOn().includes('cuda'))(
    'whose driver or library is missing says so before a model is read',
    async () => {
      // Where there is a working GPU, the engine fails on the missing model instead.
      const error = asLoopwrightError(
        await rejection(tinyEngine('llama-tied', { device: 'cuda', directory: '/nowhere' })),
      );
      if (error.code === 'unknown_model') return;
      expect(error).toMatchObject({
        code: 'device_unavailable',
        details: { expected: /^cuda, which needs linux x64 with an NVIDIA driver/ },
      });
      expect(error.details.remedy).toMatch(/npm rebuild onnxruntime-node/);
      expect(error.message.split('\n')).toHaveLength(1);
    },
  );

  it('is named by one of five names', () => {
    expect(requireDeviceName('cpu')).toBe('cpu');
    expect(() => requireDeviceName('gpu')).toThrow(/cpu, cuda, webgpu, directml, coreml/);
  });
});

describe('the execution plan', () => {
  it('holds the device: the processor, deterministic, unless another is asked for', async () => {
    await using test = await tinyEngine('llama-tied', { device: 'cpu' });
    const training = { type: 'lora', rank: 2, alpha: 2, targetModules: ['q_proj'] } as const;
    const plan = await test.engine.createSession({ name: 's', baseModel: 'x', seed: 1, training });
    expect(plan).toMatchObject({ device: 'cpu', deterministic: true });
  });
});
