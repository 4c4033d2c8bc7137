/** `loopwright diff`: where two recorded sessions part, and how. */
import { resolve } from 'node:path';
import { counted } from '@loopwright/loops';
import type { RunComparison } from '@loopwright/server';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { arrayLines, fieldText, findingText, type Sides } from './finding-text.js';

export interface DiffOptions {
  readonly session?: string;
  readonly otherSession?: string;
}

const sides: Sides = ['in the first', 'in the second'];
/** Arrays that are named; the others are counted, and all are in the JSON. */
const arraysShown = 5;

/** Exit code 1 when an operation differs. */
export async function diffCommand(
  first: string,
  second: string,
  { session, otherSession = session }: DiffOptions,
  { console, exitWith }: CommandContext,
): Promise<void> {
  const { compareRuns } = await import('@loopwright/server');
  const comparison = await compareRuns(
    { dataDir: resolve(first), ...(session === undefined ? {} : { session }) },
    { dataDir: resolve(second), ...(otherSession === undefined ? {} : { session: otherSession }) },
  );
  console.event({ type: 'diff', ...comparison });
  for (const line of describe(comparison)) console.line(line);
  if (!comparison.same) exitWith(exitCodes.failed);
}

function describe({ sessions, plan, creation, first, weights, compared, same }: RunComparison): string[] {
  const lines = [`First: ${sessions[0]}. Second: ${sessions[1]}.`];
  if (plan.length > 0) {
    lines.push('The execution plans differ, and bits are promised under one plan only:');
    lines.push(...plan.map((field) => `  ${fieldText(field, sides)}`));
  }
  if (creation.length > 0) {
    lines.push('The sessions were created with different settings:');
    lines.push(...creation.map((field) => `  ${fieldText(field, sides)}`));
  }
  if (same) lines.push(`The same, bit for bit: ${counted(compared, 'operation')}.`);
  if (first === undefined) return lines;
  lines.push(
    `The first operation that differs is ${first.place} (${first.type}), after ${compared} that are the same:`,
  );
  lines.push(...first.findings.map((finding) => `  ${findingText(finding, sides)}`));
  if (weights !== undefined) {
    const { operation, difference } = weights;
    lines.push(`The first saved weights that differ are those of operation ${operation.place} (${operation.type}):`);
    lines.push(...arrayLines(difference, arraysShown).map((line) => `  ${line}`));
    const more = difference.arrays.length - arraysShown;
    if (more > 0) lines.push(`  and ${more} more arrays of ${difference.arraysCompared}`);
    if (difference.arrays.length === 0) lines.push(`  ${difference.files.join(', ')}`);
  }
  return lines;
}
