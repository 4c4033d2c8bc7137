/** `loopwright replay`: runs recorded sessions again, from an empty engine, and says where a bit differs. */
import { join, resolve } from 'node:path';
import type { Device } from '@loopwright/engine';
import { counted } from '@loopwright/loops';
import type { ReplayEvent, ReplayReport } from '@loopwright/server';
import { loadServer } from '../../embedded.js';
import { HubCache } from '../../hub/hub-cache.js';
import { listenForInterrupt } from '../../interrupt.js';
import { installedModels } from '../../models.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { StatusLine } from '../status-line.js';
import { fieldText, findingText, type Sides, sizeText } from './finding-text.js';

export interface ReplayCommandOptions {
  readonly session?: string;
  readonly threads?: number;
  readonly device?: Device;
  readonly model?: Readonly<Record<string, string>>;
  /** Where what it came to is kept. */
  readonly keep?: string;
}

const sides: Sides = ['recorded', 'now'];
/** Fields that are named in the summary; all are in the JSON. */
const fieldsShown = 8;

/** Exit code 1 when anything differs, or nothing was recorded. */
export async function replayCommand(
  directory: string,
  { session, threads, device, model = {}, keep }: ReplayCommandOptions,
  { console, settings, exitWith }: CommandContext,
): Promise<void> {
  const models = await installedModels({ models: model, folders: settings.modelFolders });
  const { replay } = await loadServer();
  const keepIn = keep === undefined ? undefined : resolve(keep);
  using interrupt = listenForInterrupt({ onInterrupt: () => console.note('Stopping the replay.') });
  using progress = new StatusLine(console);
  const reports = await replay({
    dataDir: resolve(directory),
    models,
    modelCache: new HubCache(settings.hub.cacheDirectory),
    cacheDirectory: join(settings.home, 'cache'),
    onEvent: (event) => tell(event, { console, progress }),
    signal: interrupt.signal,
    ...(session === undefined ? {} : { session }),
    ...(threads === undefined ? {} : { threads }),
    ...(device === undefined ? {} : { device }),
    ...(keepIn === undefined ? {} : { keepIn }),
  });
  const isSame = reports.every(({ differences }) => differences.length === 0);
  const compared = reports.reduce((sum, report) => sum + report.compared, 0);
  const kept = keepIn === undefined ? {} : { kept: keepIn };
  console.event({ type: 'replay-end', same: isSame, sessions: reports.length, compared, ...kept });
  if (keepIn !== undefined) console.line(`Kept in ${keepIn}, for loopwright diff.`);
  if (compared === 0) console.line('Nothing was recorded here that could be run again.');
  if (!isSame || compared === 0) exitWith(exitCodes.failed);
}

interface Teller {
  readonly console: CommandContext['console'];
  readonly progress: StatusLine;
}

function tell(event: ReplayEvent, { console, progress }: Teller): void {
  switch (event.type) {
    case 'session-start': {
      const { plan, planChanges } = event;
      console.event({ ...event });
      console.line(
        `${console.paint.bold(event.session)}: ${event.baseModel}, ${counted(plan.threads, 'thread')}, ${plan.runtimeVersion}`,
      );
      if (planChanges.length === 0) return;
      const changes = planChanges.map((change) => fieldText(change, sides)).join('; ');
      console.line(
        console.paint.yellow(
          `This replay leaves the recorded plan (${changes}): bits are promised under one plan only.`,
        ),
      );
      return;
    }
    case 'operation-end': {
      const { done, total, findings, ...operation } = event.operation;
      progress.show({
        event: { type: 'progress', session: event.session, done, total },
        text: `${done} of ${total} operations`,
      });
      if (findings.length === 0) return;
      progress.clear();
      console.event({ type: 'difference', session: event.session, operation, findings });
      const texts = findings.map((finding) => findingText(finding, sides)).join('; ');
      console.line(`${console.paint.red(operation.place.padStart(5))}  ${operation.type}  ${texts}`);
      return;
    }
    case 'session-end':
      progress.clear();
      console.event({ ...event });
      for (const line of summary(event.report)) console.line(line);
      console.table(largest(event.report));
      return;
    default:
      event satisfies never;
  }
}

function summary(report: ReplayReport): string[] {
  const { compared, differences, versions, fingerprints, leftOut, versionsGone, foreignVersions } = report;
  if (report.plan === undefined) return [`${report.session}: it never came to run.`];
  const extent = `${counted(compared, 'operation')}, the weights of ${counted(versions, 'saved version')} and ${counted(fingerprints, 'step')}`;
  return [
    differences.length === 0
      ? `The same, bit for bit: ${extent}.`
      : `${counted(differences.length, 'operation')} of ${compared} differ${differences.length === 1 ? 's' : ''}; compared: ${extent}.`,
    ...(leftOut === 0
      ? []
      : [`Left out: ${counted(leftOut, 'operation')} that changed nothing (cancelled, skipped, not ended).`]),
    ...(versionsGone === 0
      ? []
      : [`Not there to compare with: ${counted(versionsGone, 'saved version')}, expired or deleted.`]),
    ...(foreignVersions === 0 ? [] : [`Taken as recorded: ${counted(foreignVersions, 'version')} of other sessions.`]),
  ];
}

/** The fields that differ most, each with its largest difference anywhere. */
function largest(report: ReplayReport): (readonly [string, string])[] {
  const sizes = Object.entries(report.largest).sort(([, a], [, b]) => b - a);
  return sizes.slice(0, fieldsShown).map(([field, size]) => [field, `by ${sizeText(size)} at most`] as const);
}
