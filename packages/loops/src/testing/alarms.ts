/** An alarm as a guard raises it. */
import type { Alarm } from '../guard/alarm.js';

export function alarmAt(step: number, level: Alarm['level'] = 'warn'): Alarm {
  const seen = `0.01 for LoRA, at step ${step}`;
  const page = 'docs/guides/guard/learning-rate.md';
  return { name: 'guard/learning-rate', level, step, seen, remedy: 'begin at 1e-4', times: step, page };
}
