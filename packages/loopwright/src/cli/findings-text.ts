/** Findings for people: the gravest first, each with what to do. */
import type { Finding } from '@loopwright/loops';
import type { Console } from './console.js';

export function showFindings(findings: readonly Finding[], console: Console): void {
  const { paint } = console;
  const colours = { stop: paint.red, warn: paint.yellow, note: paint.cyan };
  for (const { level, name, seen, remedy } of findings) {
    console.line(`${colours[level](level.padEnd(4))}  ${paint.bold(name)}`);
    console.hanging('      ', seen);
    console.hanging(`      ${paint.dim('→')} `, remedy);
  }
}
