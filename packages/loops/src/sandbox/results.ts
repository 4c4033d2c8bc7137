/** From how a child ended to what is told of its program. */

import { errorOf } from './call-result.js';
import type { ChildEnd } from './child-process.js';
import type { Ending } from './execution.js';
import type { SandboxOutput, SandboxResult } from './sandbox.js';

type Outcome = SandboxResult extends infer R ? (R extends SandboxResult ? Omit<R, keyof SandboxOutput> : never) : never;

/** The outcome of a program; `isComplete` tells whether all that it was asked for is there. */
export function outcomeOf(ending: Ending, isComplete: boolean, stderr: string): Outcome {
  switch (ending.type) {
    case 'timeout':
    case 'out_of_memory':
      return { status: ending.type };
    case 'stopped':
      return { status: 'killed', reason: 'stopped' };
    case 'ended':
      return outcomeOfDeath(ending.end, stderr);
    case 'answered': {
      const { status, error } = ending.message;
      if (status === 'out_of_memory') return { status };
      if (status === 'error') return { status, error: errorOf(error) };
      if (status === 'ok' && isComplete) return { status };
      return { status: 'killed', reason: 'an answer that is none' };
    }
  }
}

const deaths = {
  flooded: 'it returned too much',
  malformed: 'an answer that is none',
  'spawn-failed': 'no process',
} as const;

function outcomeOfDeath(end: ChildEnd, stderr: string): Outcome {
  if (end.type !== 'exit') return { status: 'killed', reason: deaths[end.type] };
  // The engine's last word when its own heap is full.
  if (end.signal === 'SIGABRT' && /heap out of memory/.test(stderr)) return { status: 'out_of_memory' };
  if (end.signal === 'SIGXCPU') return { status: 'timeout' };
  return { status: 'killed', reason: end.signal ?? `exit code ${end.code}` };
}
