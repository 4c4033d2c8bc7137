/** The error of something that must fail, and what it must tell. */
import type { ErrorCode } from '@loopwright/protocol';
import { LoopwrightError } from 'loopwright';
import { expect } from 'vitest';

/** The LoopwrightError that `work` throws or rejects with. */
export async function failureOf(work: () => unknown): Promise<LoopwrightError> {
  try {
    await work();
  } catch (error) {
    if (LoopwrightError.isInstance(error)) return error;
    throw error;
  }
  throw new Error('expected a failure, got success');
}

export interface Refusal {
  readonly code: ErrorCode;
  readonly field: string | RegExp;
  readonly expected: string | RegExp;
  readonly got: string | RegExp;
  readonly remedy?: string | RegExp;
}

const parts = ['field', 'expected', 'got', 'remedy'] as const;

/** Checks the code, and that all that a person needs is in the details: field, expected, got and a remedy, whichever it is. */
export function expectRefusal(error: LoopwrightError, { code, ...details }: Refusal): void {
  expect(error.code, error.message).toBe(code);
  for (const part of parts) expect(error.details[part], `${part} of: ${error.message}`).toMatch(/./);
  for (const [name, wanted] of Object.entries(details)) {
    const told = error.details[name];
    expect(told, `${name} of: ${error.message}`).toBeTypeOf('string');
    if (typeof wanted === 'string') expect(told, `${name} of: ${error.message}`).toContain(wanted);
    else expect(told, `${name} of: ${error.message}`).toMatch(wanted);
  }
}
