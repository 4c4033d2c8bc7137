/** `loopwright templates check`: the renderer of a model against its template, and against what another program rendered. */
import { readFile, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { escapeText } from '@loopwright/loops';
import { complaint } from '@loopwright/protocol';
import { checkRenderer, type Finding, type ReferenceFile, readReferenceFile } from '@loopwright/text';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { modelText } from './sources.js';

export interface CheckOptions {
  readonly against?: string;
}

/** Above any suite; checked before reading. */
const maximumReferenceBytes = 256_000_000;

/** Exit code 1 when anything differs. */
export async function checkCommand(model: string, { against }: CheckOptions, context: CommandContext): Promise<void> {
  const { console, exitWith } = context;
  const { path, sources } = await modelText(model, context);
  const reference = against === undefined ? undefined : await readReference(resolve(against));
  const { renderer, cases, findings } = checkRenderer(sources, reference === undefined ? {} : { reference });
  const { family, tools, thinking, thinkingSwitch } = renderer.tokenizer.turnFormat;
  const stops = renderer.stopTokenIds.map((id) => renderer.tokenizer.controlToken(id) ?? String(id));
  const { madeBy } = reference ?? {};
  console.event({
    type: 'template',
    path,
    family,
    tools,
    thinking,
    thinkingSwitch,
    stops,
    cases,
    ...(madeBy === undefined ? {} : { madeBy }),
  });
  console.table([
    ['model', path],
    ['format', family],
    ['calls', tools],
    ['reasoning', thinkingSwitch ? 'by switch' : thinking || family === 'gpt-oss' ? 'yes' : 'no'],
    ['turns end', stops.map(escapeText).join(' ')],
    ...(reference === undefined
      ? []
      : [
          [
            'reference',
            `${reference.cases.length} chats${madeBy === undefined ? '' : ` by ${escapeText(madeBy)}`}`,
          ] as const,
        ]),
  ]);
  for (const finding of findings) if (finding.status !== 'same') console.event({ type: 'finding', ...finding });
  const count = (status: Finding['status']): number => findings.filter((finding) => finding.status === status).length;
  for (const status of ['not-comparable', 'noted'] as const) showReasons(findings, status, context);
  for (const finding of findings) if (finding.status === 'different') showDifference(finding, context);
  const counts = {
    same: count('same'),
    notComparable: count('not-comparable'),
    noted: count('noted'),
    different: count('different'),
  };
  console.event({ type: 'check-end', ...counts });
  console.line();
  console.line(
    `${cases} chats: ${counts.same} checks came out the same, ${counts.different} different; ${counts.noted} noted, ${counts.notComparable} not comparable.`,
  );
  if (reference === undefined)
    console.line('Nothing was compared with another program: see loopwright templates --help.');
  if (counts.different > 0) exitWith(exitCodes.failed);
}

/** Each reason once, with the chats that it is about. */
function showReasons(
  findings: readonly Finding[],
  status: 'not-comparable' | 'noted',
  { console }: CommandContext,
): void {
  const reasons = new Map<string, Set<string>>();
  for (const finding of findings) {
    if (finding.status !== status) continue;
    const reason = `${finding.check}: ${finding.reason}`;
    reasons.set(reason, (reasons.get(reason) ?? new Set()).add(finding.case));
  }
  if (reasons.size === 0) return;
  console.line();
  console.line(console.paint.bold(status === 'noted' ? 'Noted' : 'Not comparable'));
  for (const [reason, cases] of reasons)
    console.line(`  ${escapeText(reason)}  ${console.paint.dim(`(${[...cases].map(escapeText).join(', ')})`)}`);
}

function showDifference(finding: Finding & { readonly status: 'different' }, { console }: CommandContext): void {
  const { check, reason, difference } = finding;
  console.line();
  console.line(`${console.paint.red('different')}  ${escapeText(finding.case)}, ${check}: ${escapeText(reason)}`);
  if (difference === undefined) return;
  const { unit, at, expected, got } = difference;
  console.table([
    ['at', `${unit} ${at}`],
    ['expected', escapeText(expected)],
    ['got', escapeText(got)],
  ]);
}

async function readReference(path: string): Promise<ReferenceFile> {
  const wrong = (expected: string, got: string, cause?: unknown) =>
    complaint({ field: 'against', expected, got, cause });
  const info = await stat(path).catch((cause: unknown) => {
    throw wrong('a file with renderings', `none at ${path}`, cause);
  });
  if (info.size > maximumReferenceBytes) throw wrong(`at most ${maximumReferenceBytes} bytes`, String(info.size));
  return readReferenceFile(await readFile(path, 'utf8'));
}
