/** Runs in words. */
import { relative } from 'node:path';
import { escapeText } from '@loopwright/loops';
import type { RunRecord, StoredRun } from '@loopwright/loops/node';

/** The folder, as it would be typed here. */
export function folderText({ folder }: Pick<StoredRun, 'folder'>): string {
  const path = relative(process.cwd(), folder);
  return escapeText(path === '' ? '.' : path.startsWith('..') ? folder : path);
}

/** Up to six digits, such as `0.5125` or `1.2e-7`. */
export function numberText(value: number): string {
  return String(Number(value.toPrecision(6)));
}

/** `42 s`, `3 min 05 s`, `2 h 10 min`. */
export function durationText(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const two = (value: number) => String(value).padStart(2, '0');
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${two(Math.floor((seconds % 3600) / 60))} min`;
}

/** From its beginning to its end, or to the last that is known of it. */
export function durationOf({ record, steps }: StoredRun): number {
  const end =
    record.endedAt === undefined
      ? steps.reduce((last, { atMs }) => Math.max(last, atMs), 0)
      : Date.parse(record.endedAt);
  return Math.max(0, end - Date.parse(record.startedAt));
}

/** The number that a run is looked at by, at its last step that has it. */
export function headline({ steps }: StoredRun): string {
  for (const name of ['validation/accuracy', 'reward/mean', 'loss/mean']) {
    const value = steps.findLast(({ metrics }) => metrics[name] !== undefined)?.metrics[name];
    if (value !== undefined) return `${name} ${numberText(value)}`;
  }
  return '-';
}

export function lastStep({ steps }: StoredRun): number {
  return steps.at(-1)?.step ?? 0;
}

/** How the test of the grader let a run begin. */
export function gateText(gate: NonNullable<RunRecord['graderGates']>[number]): string {
  if (gate.outcome === 'passed') return `passed, asked at step ${gate.step}`;
  return `failed (${gate.findings.join(', ')}) and overridden at step ${gate.step}: ${gate.reason}`;
}
