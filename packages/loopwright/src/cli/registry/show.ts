/** `loopwright registry show`: all that is known of a version. */
import type { VersionDetail } from '@loopwright/client';
import { type TrainedData, type TrainingSpec, versionLimits } from '@loopwright/protocol';
import type { Console } from '../console.js';
import type { CommandContext } from '../context.js';
import type { ServerAddress } from '../sessions.js';
import { bytesText, formatTable, timeText } from '../text.js';
import { atServer } from './at-server.js';
import { approvalText, nameOf, oneLine, stateText } from './list.js';

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
    ...(tagText.length === 0 ? [] : [['tags', tagText.join(', ')] as const]),
    ['base model', version.baseModel],
    ['trained', trainingText(version.training)],
    ['session', `${lineage.sessionName}, after ${lineage.step} optimizer steps`],
    ['from', ancestors.length === 0 ? 'the base model' : ancestors.map((one) => ancestorText(one)).join(' ← ')],
    ...(lineage.data === null ? [] : [['data since', dataText(lineage.data)] as const]),
    ['saved', timeText(version.createdAtMs)],
    ['size', bytesText(version.sizeBytes)],
  ]);
  if (metrics.length > 0) {
    console.line();
    const rows = metrics.map(({ name, value, note, atMs }) => [name, String(value), timeText(atMs), oneLine(note)]);
    for (const line of formatTable(['metric', 'value', 'attached', 'how'], rows)) console.line(line);
  }
  if (files.length > 0) {
    console.line();
    const rows = files.map(({ path, sizeBytes, sha256 }) => [path, bytesText(sizeBytes), sha256]);
    for (const line of formatTable(['file', 'size', 'sha256'], rows)) console.line(line);
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
