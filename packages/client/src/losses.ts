/** How the types of a call tie data and configuration to the loss that it names. */
import type { LossConfig, LossName } from '@loopwright/protocol';

/** What may be set for loss `L`; nothing at all for losses without configuration. */
export type LossConfigFor<L extends LossName> = [keyof LossConfig<L>] extends [never]
  ? Readonly<Record<string, never>>
  : LossConfig<L>;
