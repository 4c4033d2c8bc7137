/** What an engine can compute on: the names, and where the runtime's packages have them. Loads nothing. */
import { complaint } from '@loopwright/protocol';

/** The processor, or an accelerator by the interface that the runtime drives it with. */
export const devices = ['cpu', 'cuda', 'webgpu', 'directml', 'coreml'] as const;
export type Device = (typeof devices)[number];

export interface DeviceFacts {
  /** What the runtime calls it. */
  readonly provider: string;
  /** Hosts whose package of the runtime has it, as `platform arch`. */
  readonly hosts: readonly string[];
  /** What must be there besides. */
  readonly needs: string;
  readonly remedy: string;
}

const otherDevice = 'or leave the device out to compute on the processor';

/** Of onnxruntime-node 1.30. */
export const deviceFacts: Readonly<Record<Device, DeviceFacts>> = {
  cpu: {
    provider: 'cpu',
    hosts: ['linux x64', 'linux arm64', 'darwin arm64', 'win32 x64', 'win32 arm64'],
    needs: 'nothing more',
    remedy: 'reinstall the runtime',
  },
  cuda: {
    provider: 'cuda',
    hosts: ['linux x64'],
    needs: 'an NVIDIA driver, CUDA 12, cuDNN 9 and the CUDA libraries of the runtime',
    remedy: `install driver, CUDA 12 and cuDNN 9, fetch the runtime's libraries with \`npm rebuild onnxruntime-node --ignore-scripts=false --onnxruntime-node-install=cuda12\`, ${otherDevice}`,
  },
  webgpu: {
    provider: 'webgpu',
    hosts: ['linux x64', 'darwin arm64', 'win32 x64', 'win32 arm64'],
    needs: 'a graphics driver (Vulkan on Linux)',
    remedy: `install the driver of the graphics card (on Linux with Vulkan), ${otherDevice}`,
  },
  directml: {
    provider: 'dml',
    hosts: ['win32 x64', 'win32 arm64'],
    needs: 'a graphics card for DirectX 12 with its driver',
    remedy: `install the driver of the graphics card, ${otherDevice}`,
  },
  coreml: {
    provider: 'coreml',
    hosts: ['darwin arm64'],
    needs: 'nothing more',
    remedy: `update macOS, ${otherDevice}`,
  },
};

/** Devices that the runtime's package for a host has, whether a driver is there or not. */
export function devicesOn(host: Pick<NodeJS.Process, 'platform' | 'arch'> = process): Device[] {
  return devices.filter((device) => deviceFacts[device].hosts.includes(`${host.platform} ${host.arch}`));
}

/** @throws `invalid_argument` for what is no device's name */
export function requireDeviceName(name: string): Device {
  const found = devices.find((device) => device === name);
  if (found !== undefined) return found;
  throw complaint({
    field: 'device',
    expected: `one of ${devices.join(', ')}`,
    got: JSON.stringify(name.slice(0, 40)),
  });
}
