/** A run asks whether its grader has passed, before it begins. */
import { LoopwrightError, requireReason } from '@loopwright/protocol';
import type { GateResult } from './words.js';

/** A result to begin a run with: passed, or failed and overridden with a reason. */
export type GraderGate = GateResult | { readonly result: GateResult; readonly override: string };

/** How a gate let a run begin. */
export type GateDecision =
  | { readonly outcome: 'passed'; readonly casesHash: string }
  | {
      readonly outcome: 'overridden';
      readonly casesHash: string;
      /** As it was given. */
      readonly reason: string;
      /** Names of the findings that say stop. */
      readonly findings: readonly string[];
    };

/**
 * Lets a run begin, or refuses it.
 *
 * @throws `grader_gate_failed` for a result that failed, without override; `invalid_argument` for a reason of fewer than ten characters
 */
export function requireGate(gate: GraderGate): GateDecision {
  const { result, override } = 'format' in gate ? { result: gate, override: undefined } : gate;
  const { casesHash } = result;
  if (result.outcome === 'pass') return { outcome: 'passed', casesHash };
  const stops = result.findings.filter(({ level }) => level === 'stop');
  if (override === undefined) {
    throw new LoopwrightError({
      code: 'grader_gate_failed',
      message: `grader: its gate failed: ${stops.map(({ name, seen }) => `${name} (${seen})`).join('; ')}; mend it and run loopwright grader test again, or override with a reason`,
      details: { field: 'gate', findings: stops.map(({ name }) => name) },
    });
  }
  checkReason(override);
  return { outcome: 'overridden', casesHash, reason: override, findings: stops.map(({ name }) => name) };
}

/** @throws `invalid_argument` */
export function checkReason(reason: unknown): asserts reason is string {
  requireReason(reason, {
    field: 'override',
    remedy: 'say why the run may begin with a grader that fails: it is recorded',
  });
}
