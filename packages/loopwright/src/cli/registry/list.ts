/** `loopwright registry groups` and `list`: what a server keeps. */
import type { VersionSummary } from '@loopwright/client';
import { escapeText, truncateText } from '@loopwright/loops';
import type { ApprovalStatus, VersionKind } from '@loopwright/protocol';
import type { CommandContext } from '../context.js';
import { type ServerAddress, serviceOf } from '../sessions.js';
import { showTable } from '../show-table.js';
import { bytesText, timeText } from '../text.js';

export async function groupsCommand(address: ServerAddress, context: CommandContext): Promise<void> {
  const { console } = context;
  const service = serviceOf(address, context);
  const groups = await service.registry.groups();
  for (const group of groups) console.event({ type: 'group', ...group });
  if (groups.length === 0) {
    console.line(`No groups at ${service.baseUrl}: the first save makes one.`);
    return;
  }
  const rows = groups.map(({ name, versions, latest, createdAtMs, description }) => [
    name,
    String(versions),
    latest === null ? '-' : String(latest),
    timeText(createdAtMs),
    oneLine(description),
  ]);
  showTable(console, ['group', 'versions', 'latest', 'created', 'description'], rows);
}

export interface ListOptions extends ServerAddress {
  readonly kind?: VersionKind;
  readonly approval?: ApprovalStatus;
  readonly session?: string;
  readonly tag?: string;
  readonly all?: boolean;
  readonly ended?: boolean;
  readonly limit: number;
}

export async function listCommand(
  group: string | undefined,
  { kind, approval, session, tag, all = false, ended = false, limit, ...address }: ListOptions,
  context: CommandContext,
): Promise<void> {
  const { console } = context;
  const service = serviceOf(address, context);
  const found = await service.registry.list({
    ...(group === undefined ? {} : { group }),
    ...(kind === undefined ? {} : { kind }),
    ...(approval === undefined ? {} : { approval }),
    ...(session === undefined ? {} : { session }),
    ...(tag === undefined ? {} : { tag }),
    ended,
    maxResults: limit,
  });
  const versions = all ? found : found.filter((version) => !isPassing(version));
  for (const version of versions) console.event({ type: 'version', ...version });
  const hidden = found.length - versions.length;
  if (versions.length > 0) {
    const head = ['version', 'kind', 'state', 'approval', 'step', 'size', 'saved', 'description'];
    showTable(console, head, versions.map(rowOf));
  } else if (hidden === 0) console.line(`No such versions at ${service.baseUrl}.`);
  if (hidden > 0)
    console.hanging(
      '',
      `${versions.length === 0 ? 'Only' : 'And'} ${hidden} without a description that expire, made by loops for their next samples: --all shows them.`,
    );
  if (found.length === limit) console.note(`These are the newest ${limit}; --limit shows more.`);
}

/** What a loop saved for its next samples. */
function isPassing({ expiresAtMs, description, tags }: VersionSummary): boolean {
  return expiresAtMs !== null && description === '' && Object.keys(tags).length === 0;
}

function rowOf(version: VersionSummary): string[] {
  return [
    nameOf(version),
    version.kind,
    stateText(version),
    approvalText(version),
    String(version.lineage.step),
    bytesText(version.sizeBytes),
    timeText(version.createdAtMs),
    oneLine(version.description),
  ];
}

/** `group/number`, which the commands take. */
export function nameOf({ groupName, number }: Pick<VersionSummary, 'groupName' | 'number'>): string {
  return `${groupName}/${number}`;
}

/** What was decided, or that nothing was: a status alone would look like somebody's word. */
export function approvalText({ approval }: Pick<VersionSummary, 'approval'>): string {
  return approval.decidedAtMs === null ? 'undecided' : approval.status;
}

export function stateText({ state, expiresAtMs }: Pick<VersionSummary, 'state' | 'expiresAtMs'>): string {
  return state === 'available' && expiresAtMs !== null ? `until ${timeText(expiresAtMs)}` : state;
}

/** Text of people in a table: in one line, and without what a terminal would obey. */
export function oneLine(text: string, most = 60): string {
  return truncateText(escapeText(text.replace(/\s+/g, ' ')), most);
}
