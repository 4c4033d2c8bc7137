/** What was used, summed up: our own route, beside those of the published APIs. */
import { LoopwrightError, type TokenUsage, type UsageGrouping } from '@loopwright/protocol';
import { arrayAt, integerAt, objectAt, stringAt } from '../checks.js';

export const usagePath = '/v1/usage';

export interface UsageQuery {
  readonly by: UsageGrouping;
  /** Ended at or after this, in ms since 1970. */
  readonly fromMs?: number;
  /** Ended before this. */
  readonly toMs?: number;
}

/** A sum over operations of one base model. Only operations that used tokens count. */
export interface UsageLine extends TokenUsage {
  readonly baseModel: string;
  /** By session alone. */
  readonly session?: { readonly id: string; readonly name: string };
  /** By operation alone: its type. */
  readonly operationType?: string;
  readonly operations: number;
  /** When the first and the last of them ended. */
  readonly firstAtMs: number;
  readonly lastAtMs: number;
}

export function encodeUsageQuery({ by, fromMs, toMs }: UsageQuery): string {
  const query = new URLSearchParams({ by });
  if (fromMs !== undefined) query.set('from', String(fromMs));
  if (toMs !== undefined) query.set('to', String(toMs));
  return query.toString();
}

/** @throws `connection_lost` for what no server of ours would say */
export function decodeUsage(body: unknown): UsageLine[] {
  try {
    return arrayAt(objectAt(body, 'body').usage, 'usage').map((line, i) => lineAt(line, `usage[${i}]`));
  } catch (cause) {
    throw new LoopwrightError({
      code: 'connection_lost',
      message: `usage: the answer is none: ${String(cause)}`,
      cause,
    });
  }
}

function lineAt(value: unknown, field: string): UsageLine {
  const line = objectAt(value, field);
  const text = (key: string) => stringAt(line[key], `${field}.${key}`, { max: 4096 });
  const count = (key: string) => integerAt(line[key], `${field}.${key}`, { min: 0, max: Number.MAX_SAFE_INTEGER });
  const session = line.session === undefined ? undefined : objectAt(line.session, `${field}.session`);
  return {
    baseModel: text('baseModel'),
    ...(session === undefined
      ? {}
      : {
          session: {
            id: stringAt(session.id, `${field}.session.id`, { max: 64 }),
            name: stringAt(session.name, `${field}.session.name`, { max: 256 }),
          },
        }),
    ...(line.operationType === undefined ? {} : { operationType: text('operationType') }),
    operations: count('operations'),
    prefillTokens: count('prefillTokens'),
    sampleTokens: count('sampleTokens'),
    trainingTokens: count('trainingTokens'),
    firstAtMs: count('firstAtMs'),
    lastAtMs: count('lastAtMs'),
  };
}
