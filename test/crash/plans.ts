/** Where processes are to be killed: drawn from the points that a run without kills counted, and handed to them as files. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Role } from './served.js';

/** At its `point`-th durable write, from 1, counted from the start of the process that takes this plan. */
export interface Kill {
  readonly role: Role;
  readonly point: number;
  readonly when: 'before' | 'after';
}

export interface TimedKill {
  readonly role: Role;
  readonly afterMs: number;
}

/** A kill that happened. */
export interface Fired {
  readonly role: Role;
  /** write, sync, rename, unlink or commit; `time` for a moment. */
  readonly kind: string;
  readonly what: string;
  readonly point?: number;
  readonly when?: string;
}

/** Kinds of the durable writes of a process, in order. */
export type Points = Readonly<Record<Role, readonly string[]>>;

/** Processes take the plans of their role one after another. */
export async function writePlans(folder: string, kills: readonly Kill[]): Promise<void> {
  for (const [index, { role, ...plan }] of kills.entries()) {
    await writeFile(join(folder, `${role}-${String(index).padStart(3, '0')}.json`), JSON.stringify(plan));
  }
}

export async function readFired(folder: string): Promise<Fired[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.fired')).sort();
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
  return texts.map((text) => JSON.parse(text) as Fired); // true: the processes wrote them
}

/** What a traced run without kills counted. */
export async function readPoints(folder: string): Promise<Points> {
  const names = await readdir(folder);
  const of = async (role: Role): Promise<string[]> => {
    const name = names.find((each) => each.startsWith(`${role}.`) && each.endsWith('.trace'));
    if (name === undefined) throw new Error(`no ${role} counted its writes`);
    const lines = (await readFile(join(folder, name), 'utf8')).trim().split('\n');
    return lines.map((line) => String(line.split(' ')[0]));
  };
  return { server: await of('server'), engine: await of('engine') };
}

/** Kills of a role: a kind first, so that rare ones come as often as frequent ones, then one of its points. */
export function drawKills(
  points: Points,
  { role, count, random }: { readonly role: Role; readonly count: number; readonly random: () => number },
): Kill[] {
  const kinds = [...new Set(points[role])];
  return Array.from({ length: count }, () => {
    const kind = kinds[Math.floor(random() * kinds.length)]!;
    const places = points[role].flatMap((each, index) => (each === kind ? [index + 1] : []));
    const point = places[Math.floor(random() * places.length)]!;
    return { role, point, when: random() < 0.5 ? 'before' : 'after' };
  });
}

/** Numbers in [0, 1) that depend on the seed alone (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
