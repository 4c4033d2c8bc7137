/** Whether the runs that `--run` names are those that trained a version: rows that another run never met say nothing of it. */
import { escapeText } from '@loopwright/loops';
import { checkpointDescription, type RunRecord, readRun } from '@loopwright/loops/node';
import { complaint, type RegisteredVersion } from '@loopwright/protocol';
import { folderText } from '../runs/text.js';

/** The part of a registry that knows which session saved what. */
export interface SessionSource {
  lineage(version: string): Promise<readonly Pick<RegisteredVersion, 'lineage'>[]>;
  list(filter: {
    readonly session: string;
    readonly kind: 'state';
    readonly ended: true;
    readonly maxResults: number;
  }): Promise<readonly Pick<RegisteredVersion, 'description'>[]>;
}

export interface TrainedByOptions {
  readonly version: { readonly id: string; readonly name: string };
  /** Folders. */
  readonly runs: readonly string[];
  /** The server: its data directory, or its URL. */
  readonly place: string;
}

/** Of a session that went through more checkpoints the newest are looked at. */
const statesLooked = 1000;

/**
 * Compares the sessions that the runs recorded with those behind the version and what it came from.
 *
 * @returns what can't be told, a line each: of a run that recorded no session, or one elsewhere; of sessions whose run isn't named
 * @throws `invalid_argument` for a run whose session is none of them
 */
export async function checkTrainedBy(
  registry: SessionSource,
  { version, runs, place }: TrainedByOptions,
): Promise<string[]> {
  if (runs.length === 0) return []; // that is said already
  const line = await registry.lineage(version.id);
  // A session that only loaded and saved met no rows.
  const trained = line.filter(({ lineage: { data } }) => data === null || data.passes > 0);
  const behind = new Set(line.map(({ lineage }) => lineage.sessionName));
  const left = new Set(trained.map(({ lineage }) => lineage.sessionName));
  const doubts: string[] = [];
  for (const folder of runs) {
    const run = await readRun(folder);
    const { record } = run;
    const name = folderText(run);
    const unknown = (why: string) =>
      doubts.push(`not known whether ${name} trained ${escapeText(version.name)}: ${why}`);
    if (record.session === undefined) unknown('it recorded no session');
    else if (record.session.place !== place) unknown(`its session was at ${escapeText(record.session.place)}`);
    else {
      const own = await ownSessions(registry, behind, record);
      for (const session of own) left.delete(session);
      if (own.length > 0) continue;
      if (record.resumed !== undefined) unknown('it was resumed, and only its last session is known');
      else throw otherRun(name, { version, behind, session: record.session.name });
    }
  }
  // Where a run's session isn't known, it may be one of these.
  if (doubts.length === 0 && left.size > 0)
    doubts.push(`not compared with what ${listed(left)} trained on before: name the runs of these sessions too`);
  return doubts;
}

/** Those of the sessions that the run trained in. Where it went on, an earlier one is known by the checkpoints that it saved. */
async function ownSessions(
  registry: SessionSource,
  behind: ReadonlySet<string>,
  { id, session, resumed }: RunRecord,
): Promise<string[]> {
  const own: string[] = [];
  for (const name of behind) {
    if (name === session?.name) own.push(name);
    else if (resumed !== undefined) {
      const states = await registry.list({ session: name, kind: 'state', ended: true, maxResults: statesLooked });
      if (states.some(({ description }) => description.startsWith(checkpointDescription(id)))) own.push(name);
    }
  }
  return own;
}

function otherRun(
  name: string,
  { version, behind, session }: { version: { name: string }; behind: ReadonlySet<string>; session: string },
): Error {
  return complaint({
    field: 'run',
    expected: `a run that trained ${escapeText(version.name)} or what it came from, in ${listed(behind)}`,
    got: `${name}, which trained in ${escapeText(session)}`,
    remedy: 'name the run of that session; loopwright registry show tells the session of a version',
  });
}

function listed(sessions: ReadonlySet<string>): string {
  return `session ${[...sessions].map(escapeText).join(', ')}`;
}
