/** In which steps the distance to the reference is measured. */
import type { GrpoReference, Resolved } from './grpo-options.js';

/** @param step from 1 */
export function isMeasured(run: Resolved, step: number): run is Resolved & { readonly reference: GrpoReference } {
  return run.reference !== undefined && (step - 1) % run.everySteps === 0;
}
