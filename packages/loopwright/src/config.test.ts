import { homedir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readSettings } from './config.js';

it('LOOPWRIGHT_DEVICE is read as it is; empty is absent', () => {
  expect(readSettings({ LOOPWRIGHT_DEVICE: 'cuda' }).device).toBe('cuda');
  expect(readSettings({ LOOPWRIGHT_DEVICE: ' ' }).device).toBeUndefined();
});

describe('the settings of the model hub', () => {
  const hub = (environment: Readonly<Record<string, string>>) => readSettings(environment).hub;

  it('are those of its other tools', () => {
    expect(hub({})).toEqual({
      endpoint: 'https://huggingface.co',
      token: undefined,
      offline: false,
      cacheDirectory: join(homedir(), '.cache', 'huggingface', 'hub'),
    });
    expect(hub({ HF_ENDPOINT: 'https://mirror.example/', HF_TOKEN: ' hf_abc ', HF_HUB_OFFLINE: '1' })).toMatchObject({
      endpoint: 'https://mirror.example',
      token: 'hf_abc',
      offline: true,
    });
    expect(hub({ HF_HUB_OFFLINE: '0' }).offline).toBe(false);
  });

  it.each([
    [{ HF_HUB_CACHE: '/a', HUGGINGFACE_HUB_CACHE: '/b', HF_HOME: '/c' }, '/a'],
    [{ HUGGINGFACE_HUB_CACHE: '/b', HF_HOME: '/c' }, '/b'],
    [{ HF_HOME: '/c', XDG_CACHE_HOME: '/d' }, '/c/hub'],
    [{ XDG_CACHE_HOME: '/d' }, '/d/huggingface/hub'],
    [{ HF_HOME: '~/models' }, `${homedir()}/models/hub`],
  ])('put the cache of %j at %s', (environment, directory) => {
    expect(hub(environment).cacheDirectory).toBe(directory);
  });
});
