/** The alarms of a run, as they are kept in `alarms.jsonl`. */
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

/** Undefined for what is no alarm. */
export function checkAlarm(value: unknown): Alarm | undefined {
  return alarm.safeParse(value).data;
}
