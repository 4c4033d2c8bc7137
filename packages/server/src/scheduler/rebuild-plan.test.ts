import { LoopwrightError } from '@loopwright/protocol';
import { describe, expect, it } from 'vitest';
import type { TrainingRecord } from '../operations/operation-record.js';
import { planRebuild } from './rebuild-plan.js';

/** `fb`, `fwd`, `step`, `save` (state 'v<n>'), `weights`, `load` (of 'x'); `!` in front: failed; `clear`: a step failed with gradient_incomplete; `nan`: with a gradient that is not finite. */
function history(text: string): TrainingRecord[] {
  const types = {
    fb: 'forward-backward',
    fwd: 'forward',
    step: 'optim-step',
    save: 'save-state',
    weights: 'save-weights',
    load: 'load-state',
    clear: 'optim-step',
    nan: 'optim-step',
  } as const;
  return text.split(' ').map((word, index) => {
    const name = word.replace('!', '') as keyof typeof types; // true: only the words above are used below
    const code = { clear: 'gradient_incomplete', nan: 'operation_failed' } as const;
    const failed = word.startsWith('!') || name in code;
    return {
      workspaceId: 'w',
      id: `${name}${index + 1}`,
      sessionId: 's',
      kind: 'training',
      type: types[name],
      sequenceNumber: index + 1,
      clientToken: null,
      payloadHash: '',
      payloadBlob: '',
      resultBlob: null,
      resolved: {
        plan: null,
        ...(name === 'save' ? { version: `v${index + 1}` } : {}),
        ...(name === 'load' ? { loadOptimizer: true } : {}),
      },
      readsVersion: name === 'load' ? 'x' : null,
      status: failed ? 'Failed' : 'Completed',
      error: failed
        ? new LoopwrightError({ code: name in code ? code[name as keyof typeof code] : 'engine_failed', message: '' })
        : null,
      createdAtMs: 0,
      startedAtMs: 0,
      endedAtMs: 0,
      engineMs: 1,
    };
  });
}

function plan(text: string, gone: readonly string[] = [], snapshotsAt: readonly number[] = []): string {
  const { anchor, replay } = planRebuild(history(text), {
    isAvailable: (version) => !gone.includes(version),
    snapshots: snapshotsAt.map((nextSequenceNumber) => ({
      id: `at${nextSequenceNumber}`,
      sessionId: 's',
      nextSequenceNumber,
      sizeBytes: 1,
    })),
  });
  return [
    anchor === undefined ? 'seed' : anchor.type === 'version' ? anchor.version : anchor.snapshot.id,
    ...replay.map(({ type, record }) => (type === 'clear' ? 'clear' : record.id)),
  ].join(' ');
}

describe('planRebuild', () => {
  it.each([
    ['fb fb step fb', [], 'seed fb1 fb2 step3 fb4'],
    ['fb step save fb', [], 'v3 fb4'],
    ['fb step fb fwd fb save fb', [], 'v6 fb3 fb5 fb7'],
    ['fb step save fb step save', [], 'v6'],
    ['fb step save fb step save', ['v6'], 'v3 fb4 step5'],
    ['fb step save fb step save', ['v3', 'v6'], 'seed fb1 step2 fb4 step5'],
    ['fb load fb save', [], 'v4 fb3'],
    ['fb load fb step', [], 'x fb3 step4'],
    ['fb !fb clear fb save', [], 'v5 fb4'],
    ['fb !fb clear fb', [], 'seed fb1 clear fb4'],
    ['fb nan fb save', [], 'v4 fb3'],
    ['fb nan fb !step', [], 'seed fb1 clear fb3'],
    ['fb weights fwd !save !load', [], 'seed fb1'],
  ])('%s without %j: %s', (text, gone, expected) => {
    expect(plan(text, gone)).toBe(expected);
  });

  it.each([
    ['fb fb step fb', [3], 'at3 step3 fb4'],
    ['fb fb step fb', [4, 2], 'at4 fb4'],
    ['fb step save fb fb', [2], 'v3 fb4 fb5'],
    ['fb step fb fb save fb', [5, 2], 'at5 fb6'],
    ['fb !fb clear fb', [3], 'at3 clear fb4'],
  ])('%s with snapshots before %j: %s', (text, snapshotsAt, expected) => {
    expect(plan(text, [], snapshotsAt)).toBe(expected);
  });
});
