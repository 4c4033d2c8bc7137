/** `loopwright registry show`: all that is known of a version. */
import type { VersionDetail } from '@loopwright/client';
import { escapeText } from '@loopwright/loops';
import { approvalGaps, type TrainedData, type TrainingSpec, versionLimits, versionResults } from '@loopwright/protocol';
import type { Console } from '../console.js';
import type { CommandContext } from '../context.js';
import type { ServerAddress } from '../sessions.js';
import { showTable } from '../show-table.js';
import { bytesText, figureText, timeText } from '../text.js';
import { atServer } from './at-server.js';
import { approvalText, nameOf, oneLine, stateText } from './list.js';
import { resultRows } from './result-text.js';

export async function showCommand(name: string, address: ServerAddress, context: CommandContext): Promise<void> {
  const [version, ...ancestors] = await atServer(address, context, ({ registry }) => registry.lineage(name));
  showVersion(version!, ancestors, context.console); // true: it begins with the version itself
}

/** @param ancestors its parent, the parent of that, and so on */
export function showVersion(version: VersionDetail, ancestors: readonly VersionDetail[], console: Console): void {
  const { approval, lineage, metrics, files, tags } = version;
  console.event({ type: 'version', ...version, ancestors: ancestors.map(({ id }) => id) });
  console.line(`${console.paint.bold(nameOf(version))}  ${oneLine(version.description)}`);
  const tagText = Object.entries(tags).map(([key, value]) => `${key}=${value}`);
  console.table([
    ['arn', version.id],
    ['kind', version.kind],
    ['state', stateText(version)],
    [
      'approval',
      approval.note === ''
        ? approvalText(version)
        : `${approvalText(version)}: ${oneLine(approval.note, versionLimits.note)}`,
    ],
    ...(tagText.length === 0 ? [] : [['tags', escapeText(tagText.join(', '))] as const]),
    ['base model', version.baseModel],
    ['trained', trainingText(version.training)],
    ['session', `${lineage.sessionName}, after ${lineage.step} optimizer steps`],
    ['from', ancestors.length === 0 ? 'the base model' : ancestors.map((one) => ancestorText(one)).join(' ← ')],
    ...(lineage.data === null ? [] : [['data since', dataText(lineage.data)] as const]),
    ['saved', timeText(version.createdAtMs)],
    ['size', bytesText(version.sizeBytes)],
    ...resultsOf(version),
  ]);
  showMetrics(metrics, console);
  if (files.length > 0) {
    console.line();
    const rows = files.map(({ path, sizeBytes, sha256 }) => [oneLine(path), bytesText(sizeBytes), sha256]);
    showTable(console, ['file', 'size', 'sha256'], rows);
  }
}

/** Beside the start of its training; nothing where none of them is known. */
function resultsOf({ metrics }: VersionDetail): readonly (readonly [string, string])[] {
  return approvalGaps(metrics).filter(({ why }) => why === 'missing').length === Object.keys(versionResults).length
    ? []
    : resultRows(metrics, { notes: false }); // these are told with the metrics
}

/** What was attached at once has one note, which is told once. */
function showMetrics(metrics: VersionDetail['metrics'], console: Console): void {
  const groups = new Map<string, VersionDetail['metrics'][number][]>();
  for (const metric of metrics) {
    const key = `${metric.atMs} ${metric.note}`;
    const group = groups.get(key) ?? [];
    group.push(metric);
    groups.set(key, group);
  }
  for (const group of groups.values()) {
    const [{ atMs, note }] = group as [VersionDetail['metrics'][number]]; // true: none is empty
    console.line();
    console.hanging(`${timeText(atMs)}  `, escapeText(note));
    console.table(group.map(({ name, value }) => [name, figureText(value)] as const));
  }
}

function trainingText(training: TrainingSpec): string {
  if (training.type === 'full') return 'every weight';
  const merged = training.samplerPath === 'merged' ? ', merged to be sampled from' : '';
  return `adapter of rank ${training.rank}, alpha ${training.alpha}, on ${training.targetModules.join(' ')}${merged}`;
}

function ancestorText(version: VersionDetail): string {
  return version.state === 'available' ? nameOf(version) : `${nameOf(version)} (${version.state})`;
}

function dataText({ passes, datums, tokens, digest }: TrainedData): string {
  const counts = `${passes} passes, ${datums} datums, ${tokens} tokens`;
  return digest === null ? counts : `${counts}, digest ${digest.slice(0, 16)}…`;
}
