/** What travels between a server's process and the engine's: calls by number, progress, answers. Typed arrays travel as they are (structured clone). */
import type { ModelCard, WireError } from '@loopwright/protocol';
import type { Engine, OnToken } from '../../engine.js';
import type { PrecisionEffect } from '../../precision.js';
import type { SwapEvent } from '../../swap.js';
import type { SliceEvent } from '../slices.js';

/** The methods of an Engine that are called across the process border. */
export const engineMethods = [
  'createSession',
  'closeSession',
  'pass',
  'optimStep',
  'clearGradient',
  'saveWeights',
  'saveState',
  'loadState',
  'snapshot',
  'restore',
  'sample',
  'computeLogprobs',
  'loadSampler',
] as const satisfies readonly (keyof Engine)[];
export type EngineMethod = (typeof engineMethods)[number];

/** Those whose second argument are both their own options and those of every call. */
const fileMethods: readonly EngineMethod[] = ['saveWeights', 'saveState', 'loadState', 'snapshot', 'restore'];
export const isFileMethod = (method: EngineMethod): boolean => fileMethods.includes(method);

export type ToEngine =
  | {
      readonly type: 'call';
      readonly id: number;
      readonly method: EngineMethod;
      readonly args: readonly unknown[];
      readonly progress: boolean;
      /** Whether tokens are told as they are drawn. */
      readonly tokens: boolean;
      /** {@link CallOptions.isRepeat} */
      readonly repeat: boolean;
    }
  | { readonly type: 'cancel'; readonly id: number }
  | { readonly type: 'stop' };

export type FromEngine =
  | {
      readonly type: 'ready';
      readonly model: ModelCard;
      readonly incarnation: string;
      readonly precisionEffect: PrecisionEffect | undefined;
    }
  | { readonly type: 'failed'; readonly error: WireError }
  | { readonly type: 'result'; readonly id: number; readonly value: unknown }
  | { readonly type: 'error'; readonly id: number; readonly error: WireError }
  | { readonly type: 'progress'; readonly id: number; readonly done: number }
  | { readonly type: 'token'; readonly id: number; readonly token: Parameters<OnToken>[0] }
  | { readonly type: 'slice'; readonly event: SliceEvent }
  | { readonly type: 'swap'; readonly event: SwapEvent };
