/** `loopwright runs show`: all that is known of a run. */
import { alarmText, escapeText } from '@loopwright/loops';
import {
  type RunRecord,
  readCheckpoints,
  readRun,
  readSignOffs,
  type SignOff,
  type StoredRun,
  seriesOf,
} from '@loopwright/loops/node';
import { shellText } from '../../shell-text.js';
import { goOnCommand } from '../../training/go-on.js';
import type { Console } from '../console.js';
import type { CommandContext } from '../context.js';
import { signOffText } from '../samples/sign-off-text.js';
import { formatTable, timeText } from '../text.js';
import { tellDamage } from './damage.js';
import { durationOf, durationText, folderText, gateText, lastStep, numberText } from './text.js';

export async function showCommand(folder: string, { console }: CommandContext): Promise<void> {
  const run = await readRun(folder);
  const signOffs = await readSignOffs(run.folder);
  const { record, state, steps } = run;
  console.event({ type: 'run', folder: run.folder, state, step: lastStep(run), ...record, signOffs });
  for (const step of steps) console.event({ ...step, type: 'metrics', of: step.type });
  for (const alarm of run.alarms) console.event({ ...alarm, type: 'alarm' });
  console.line(`${console.paint.bold(escapeText(record.name))}  ${state}${reasonText(record)}`);
  console.table([...factsOf(run), ...(await checkpointOf(run)), ...signedOff(signOffs)]);
  if (run.alarms.length > 0) {
    console.line();
    console.line('Alarms:');
    for (const alarm of run.alarms) console.line(`  ${escapeText(alarmText(alarm))}`);
  }
  console.line();
  console.line('Settings:');
  for (const line of settingsLines(record.config)) console.line(`  ${line}`);
  showMetrics(run, console);
  await tellDamage(run, console);
}

/** Where it can be gone on with, and how. */
async function checkpointOf({ folder, record, state }: StoredRun): Promise<[string, string][]> {
  const [newest] = (await readCheckpoints(folder)).checkpoints;
  if (newest === undefined) return [];
  return [
    ['checkpoint', `after step ${newest.step}: ${escapeText(newest.modelPackageArn)}`],
    ...(state === 'done' ? [] : [['go on', goOnCommand(folder, record.command)] as [string, string]]), // a done one needs more steps
  ];
}

function reasonText({ error }: RunRecord): string {
  return error === undefined ? '' : `: ${escapeText(error.message)}`;
}

function factsOf(run: StoredRun): [string, string][] {
  const { record } = run;
  const { source, versions, usage = [], cost, resumed = [], trackers = {}, graderGates = [], command } = record;
  const packages = Object.entries(versions.packages).map(([name, version]) => `${name} ${version}`);
  return [
    ['folder', folderText(run)],
    ['id', record.id],
    ['started', timeText(Date.parse(record.startedAt))],
    ['took', `${durationText(durationOf(run))}, ${lastStep(run)} steps`],
    ...(record.task === undefined ? [] : [['task', record.task] as [string, string]]),
    ...(record.repeatOf === undefined ? [] : [['repeats', record.repeatOf] as [string, string]]),
    ...resumed.map(({ at, afterStep }): [string, string] => [
      'resumed',
      `${timeText(Date.parse(at))}, after step ${afterStep}`,
    ]),
    ...graderGates.map((gate): [string, string] => ['grader test', gateText(gate)]),
    ['seeds', listed(Object.entries(record.seeds).map(([name, seed]) => `${name} ${seed}`))],
    ...Object.entries(record.data).map(([name, { rows, sha256 }]): [string, string] => [
      `data: ${name}`,
      `${rows === undefined ? '' : `${rows} rows, `}sha256 ${sha256.slice(0, 16)}…`,
    ]),
    [
      'commit',
      source === null
        ? 'not in a git repository'
        : `${source.commit}${source.dirty ? ', with changes that are not in it' : ''}`,
    ],
    ['versions', listed([`node ${versions.node}`, versions.platform, ...packages])],
    ['command', shellText(command.argv)],
    ['in', command.cwd],
    ...usage.map(({ baseModel, prefillTokens, sampleTokens, trainingTokens }): [string, string] => [
      'used',
      `${baseModel}: ${prefillTokens} tokens read, ${sampleTokens} sampled, ${trainingTokens} trained`,
    ]),
    ...(cost === undefined ? [] : [['cost', costText(cost)] as [string, string]]),
    ...Object.entries(trackers).map(([name, { link, lost, sent, problem }]): [string, string] => [
      name,
      `${link ?? ''}  ${sent} steps${lost > 0 ? `, ${lost} not sent: ${problem ?? ''}` : ''}`,
    ]),
  ].map(([name = '', value = '']): [string, string] => [escapeText(name), escapeText(value)]);
}

function signedOff(signOffs: readonly SignOff[]): [string, string][] {
  if (signOffs.length === 0) return [['signed off', 'by nobody: loopwright samples shows what it wrote']];
  return signOffs.map((each) => ['signed off', `by ${signOffText(each)}`]);
}

function costText({ currency, total, unpriced }: NonNullable<RunRecord['cost']>): string {
  return `${total.toFixed(6)} ${currency}${unpriced.length === 0 ? '' : `, without ${unpriced.join(', ')}, of which no price is known`}`;
}

function listed(parts: readonly string[]): string {
  return parts.length === 0 ? 'none' : parts.join(', ');
}

function settingsLines(config: RunRecord['config']): string[] {
  return JSON.stringify(config, null, 2)
    .split('\n')
    .map((line) => escapeText(line).replaceAll('\\\\', '\\'));
}

function showMetrics(run: StoredRun, console: Console): void {
  const series = [...seriesOf(run)].sort(([a], [b]) => a.localeCompare(b));
  if (series.length === 0) return;
  const rows = series.map(([name, values]) => {
    const numbers = [...values.values()];
    const [first = Number.NaN] = numbers;
    const least = numbers.reduce((low, value) => Math.min(low, value), Number.POSITIVE_INFINITY);
    const most = numbers.reduce((high, value) => Math.max(high, value), Number.NEGATIVE_INFINITY);
    return [
      escapeText(name),
      String(numbers.length),
      ...[first, least, most, numbers.at(-1) ?? Number.NaN].map(numberText),
    ];
  });
  console.line();
  for (const line of formatTable(['metric', 'steps', 'first', 'least', 'most', 'last'], rows)) console.line(line);
}
