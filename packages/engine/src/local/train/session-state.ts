/** Everything that a training session is between two calls: what it can be put away as, and go on from, bit for bit. */
import { complaint, type LoopwrightError, type TrainingSpec } from '@loopwright/protocol';
import type { NamedTensor } from '../../formats/safetensors.js';
import type { Moments } from './adamw.js';

/** What is trained, and how far it is. */
export interface SessionPosition {
  /** A session that had not trained may have taken another shape than it was made with, from what it loaded. */
  readonly training: TrainingSpec;
  /** Optimizer steps taken. */
  readonly step: number;
  /** Passes whose gradients are in the pending one. */
  readonly pendingPasses: number;
  /** True once a gradient was computed or a step taken. */
  readonly hasTrained: boolean;
}

export interface SessionState extends SessionPosition {
  /** Trained arrays by name. */
  readonly values: ReadonlyMap<string, Float32Array>;
  /** Empty for a fresh optimizer. */
  readonly moments: ReadonlyMap<string, Moments>;
  /** Undefined when none is pending. The order counts: its norm is summed up in it. */
  readonly gradient: ReadonlyMap<string, Float32Array> | undefined;
}

const kinds = { value: 'value.', first: 'exp_avg.', second: 'exp_avg_sq.', gradient: 'gradient.' } as const;

/** The arrays of a state under names that tell them apart, in an order from which `stateFromTensors` makes the same state. Nothing is copied. */
export function stateTensors(
  { values, moments, gradient }: SessionState,
  shapes: ReadonlyMap<string, { readonly shape: readonly number[] }>,
): NamedTensor[] {
  const tensor = (kind: keyof typeof kinds, name: string, data: Float32Array): NamedTensor => {
    return { name: `${kinds[kind]}${name}`, shape: shapes.get(name)!.shape, data };
  };
  return [
    ...[...values].map(([name, data]) => tensor('value', name, data)),
    ...[...moments].flatMap(([name, { m, v }]) => [tensor('first', name, m), tensor('second', name, v)]),
    ...[...(gradient ?? [])].map(([name, data]) => tensor('gradient', name, data)),
  ];
}

/** @throws `model_invalid` for arrays that belong to no state */
export function stateFromTensors(position: SessionPosition, tensors: ReadonlyMap<string, Float32Array>): SessionState {
  const found = { value: new Map(), first: new Map(), second: new Map(), gradient: new Map() } satisfies Record<
    keyof typeof kinds,
    Map<string, Float32Array>
  >;
  for (const [name, data] of tensors) {
    const kind = (Object.keys(kinds) as (keyof typeof kinds)[]).find((key) => name.startsWith(kinds[key]));
    if (kind === undefined) throw misplaced(name);
    (found[kind] as Map<string, Float32Array>).set(name.slice(kinds[kind].length), data);
  }
  const moments = new Map<string, Moments>();
  for (const [name, m] of found.first as Map<string, Float32Array>) {
    const v = (found.second as Map<string, Float32Array>).get(name);
    if (v === undefined) throw misplaced(`${kinds.first}${name}`);
    moments.set(name, { m, v });
  }
  return {
    ...position,
    values: found.value,
    moments,
    gradient: position.pendingPasses > 0 ? found.gradient : undefined,
  };
}

function misplaced(name: string): LoopwrightError {
  return complaint({
    code: 'model_invalid',
    field: name.slice(0, 120),
    expected: 'trained arrays, both moments of each, and gradients',
    got: 'an array that is none of these',
    remedy: 'restore another snapshot',
  });
}
