/** `loopwright registry approve`, `reject`, `describe`, `tag`, `metrics`, `keep` and `delete`: what is said of a version, and its end. */
import type { VersionDetail } from '@loopwright/client';
import { counted } from '@loopwright/loops';
import type { VersionChange } from '@loopwright/protocol';
import { complaint, versionResults } from '@loopwright/protocol';
import type { CommandContext } from '../context.js';
import { type ServerAddress, serviceOf } from '../sessions.js';
import { figureText, timeText } from '../text.js';
import { atServer } from './at-server.js';
import { nameOf, oneLine } from './list.js';
import { resultRows } from './result-text.js';

async function change(
  version: string,
  { said, text }: { readonly said: VersionChange; readonly text: string },
  address: ServerAddress,
  context: CommandContext,
): Promise<VersionDetail> {
  const { console } = context;
  const changed = await atServer(address, context, ({ registry }) => registry.change(version, said));
  console.event({ type: 'version', ...changed });
  console.line(`${nameOf(changed)} ${text}.`);
  return changed;
}

export async function approvalCommand(
  version: string,
  {
    note = '',
    withoutResults,
    to,
    ...address
  }: ServerAddress & {
    readonly note?: string;
    /** Why it is approved without them. */
    readonly withoutResults?: string;
    readonly to: 'Approved' | 'Rejected';
  },
  context: CommandContext,
): Promise<void> {
  const text = to === 'Approved' ? 'is approved' : 'is rejected';
  const approval = { status: to, note, ...(withoutResults === undefined ? {} : { withoutResults }) };
  const { metrics } = await change(version, { said: { approval }, text }, address, context);
  // By what it was approved: whoever reads only that it is hasn't seen how few rows that was.
  if (to === 'Approved') context.console.table(resultRows(metrics, { notes: true }));
}

export async function describeCommand(
  { version, text }: { readonly version: string; readonly text: string },
  address: ServerAddress,
  context: CommandContext,
): Promise<void> {
  await change(version, { said: { description: text }, text: 'is described anew' }, address, context);
}

export async function tagCommand(
  { version, tags }: { readonly version: string; readonly tags: readonly string[] },
  { remove = [], ...address }: ServerAddress & { readonly remove?: readonly string[] },
  context: CommandContext,
): Promise<void> {
  requireSomething([...tags, ...remove], { field: 'tags', expected: 'one tag or more, such as team=math' });
  const set = tags.map((tag) => pairAt(tag, 'tags'));
  const said = { tags: Object.fromEntries([...remove.map((key) => [key, null]), ...set]) };
  await change(version, { said, text: changeText(set.length, remove.length, 'tag') }, address, context);
}

export async function metricsCommand(
  { version, metrics }: { readonly version: string; readonly metrics: readonly string[] },
  {
    note = '',
    remove = [],
    ...address
  }: ServerAddress & { readonly note?: string; readonly remove?: readonly string[] },
  context: CommandContext,
): Promise<void> {
  requireSomething([...metrics, ...remove], {
    field: 'metrics',
    expected: 'one figure or more, such as eval/accuracy=0.52',
  });
  const set = metrics.map((metric) => {
    const [name, text] = pairAt(metric, 'metrics');
    const value = text.trim() === '' ? Number.NaN : Number(text);
    if (!Number.isFinite(value))
      throw complaint({ field: `metrics ${name}`, expected: 'a finite number', got: text.slice(0, 40) });
    return [name, { value, note }] as const;
  });
  await tellReplaced(version, new Map(set), { address, context });
  const said = { metrics: Object.fromEntries([...remove.map((name) => [name, null] as const), ...set]) };
  await change(version, { said, text: changeText(set.length, remove.length, 'metric') }, address, context);
}

/**
 * Tells which figures the version has already. @throws `invalid_argument` for results that an approval asks for: by another figure it would look evaluated as
 * it wasn't, and interval and n of the evaluation would stay beside it
 */
async function tellReplaced(
  version: string,
  set: ReadonlyMap<string, { readonly value: number }>,
  { address, context }: { readonly address: ServerAddress; readonly context: CommandContext },
): Promise<void> {
  if (set.size === 0) return;
  const { metrics } = await atServer(address, context, ({ registry }) => registry.get(version));
  const asked = new Set<string>(Object.values(versionResults).flat());
  const replaced = metrics.filter(({ name, value }) => set.has(name) && set.get(name)?.value !== value);
  const result = replaced.find(({ name }) => asked.has(name));
  if (result !== undefined)
    throw complaint({
      field: `metrics ${result.name}`,
      expected: 'another name: this is a result that an approval asks for, and the version has it',
      got: `${figureText(result.value)}, of ${timeText(result.atMs)}`,
      remedy: `evaluate it again (loopwright eval), or take the result away first: --remove ${result.name}`,
    });
  for (const { name, value, note, atMs } of replaced) {
    const how = note === '' ? '' : `: ${oneLine(note)}`;
    context.console.note(`${name} was ${figureText(value)} before (${timeText(atMs)}${how})`);
  }
}

export async function keepCommand(version: string, address: ServerAddress, context: CommandContext): Promise<void> {
  await change(version, { said: { expiresAtMs: null }, text: 'stays until it is deleted' }, address, context);
}

export async function deleteCommand(version: string, address: ServerAddress, context: CommandContext): Promise<void> {
  const { console } = context;
  const { registry } = serviceOf(address, context);
  const { id, ...known } = await atServer(address, context, (service) => service.registry.get(version));
  if (await registry.delete(id)) {
    console.event({ type: 'deleted', version: id });
    console.line(`Deleted ${nameOf(known)}. What others share of its files stays.`);
    return;
  }
  console.event({ type: 'gone', version: id, state: known.state });
  console.line(`${nameOf(known)} was gone already (${known.state}).`);
}

function pairAt(text: string, field: string): [name: string, value: string] {
  const at = text.indexOf('=');
  if (at < 1) throw complaint({ field, expected: 'name=value', got: text.slice(0, 80) });
  return [text.slice(0, at), text.slice(at + 1)];
}

function requireSomething(
  list: readonly string[],
  { field, expected }: { readonly field: string; readonly expected: string },
) {
  if (list.length === 0)
    throw complaint({ field, expected, got: 'none', remedy: 'give some, or take some away by --remove' });
}

function changeText(set: number, removed: number, what: string): string {
  if (removed === 0) return `has ${counted(set, what)} more, or anew`;
  return set === 0
    ? `has ${counted(removed, what)} less`
    : `has ${counted(set, what)} more, or anew, and ${counted(removed, what)} less`;
}
