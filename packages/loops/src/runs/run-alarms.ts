/** The alarms of a run, as they are kept in `alarms.jsonl`. */
import { LoopwrightError } from '@loopwright/protocol';
import * as z from 'zod';
import { findingLevels } from '../findings.js';
import type { Alarm } from '../guard/alarm.js';

export const alarmsName = 'alarms.jsonl';

const alarm: z.ZodType<Alarm> = z.object({
  name: z.templateLiteral(['guard/', z.string()]),
  level: z.enum(findingLevels),
  step: z.number().int().min(0),
  seen: z.string(),
  where: z.string().exactOptional(),
  remedy: z.string(),
  times: z.number().int().min(1),
  page: z.string(),
});

/** The alarm that ended a run, by the error that it ended with; undefined where none did. */
export function endingAlarm(error: unknown): Alarm | undefined {
  if (!LoopwrightError.isInstance(error)) return undefined;
  const { alarm: name, ...rest } = error.details;
  return checkAlarm({ name, ...rest });
}

/** Undefined for what is no alarm. */
export function checkAlarm(value: unknown): Alarm | undefined {
  return alarm.safeParse(value).data;
}
