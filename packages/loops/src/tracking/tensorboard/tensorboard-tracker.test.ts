/** Event files, read back by their description. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BinaryReader } from '@bufbuild/protobuf/wire';
import { type TemporaryDirectory, temporaryDirectory } from '@loopwright/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openRun } from '../../runs/open-run.js';
import { alarmAt } from '../../testing/alarms.js';
import { crc32c } from './crc32c.js';
import { metricsEvent } from './event.js';
import { record } from './record.js';
import { tensorBoardTracker } from './tensorboard-tracker.js';

let directory: TemporaryDirectory;
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(() => directory[Symbol.asyncDispose]());

/** Fields of a message by their number: bytes, or numbers. */
function fieldsOf(bytes: Uint8Array): Map<number, (Uint8Array | number)[]> {
  const reader = new BinaryReader(bytes);
  const fields = new Map<number, (Uint8Array | number)[]>();
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    const value =
      type === 0 ? Number(reader.int64()) : type === 1 ? reader.double() : type === 5 ? reader.float() : reader.bytes();
    fields.set(field, [...(fields.get(field) ?? []), value]);
  }
  return fields;
}

const bytesOf = (value: Uint8Array | number | undefined) => value as Uint8Array; // true: the fields asked for are messages or strings
const textOf = (value: Uint8Array | number | undefined): string => Buffer.from(bytesOf(value)).toString();

interface ReadEvent {
  readonly step: number;
  readonly version?: string;
  readonly isRestart: boolean;
  readonly values: Readonly<Record<string, number | string>>;
}

function readEvents(file: Buffer): ReadEvent[] {
  const events: ReadEvent[] = [];
  for (let at = 0; at < file.length; ) {
    const length = Number(file.readBigUInt64LE(at));
    const data = file.subarray(at + 12, at + 12 + length);
    expect(file.subarray(at, at + 16 + length)).toEqual(record(data));
    at += 16 + length;
    const fields = fieldsOf(data);
    const [version] = fields.get(3) ?? [];
    const values = (fields.get(5) ?? []).flatMap((summary) =>
      (fieldsOf(bytesOf(summary)).get(1) ?? []).map((value) => {
        const own = fieldsOf(bytesOf(value));
        const [simple] = own.get(2) ?? [];
        const [tensor] = own.get(8) ?? [];
        const shown = typeof simple === 'number' ? simple : textOf(fieldsOf(bytesOf(tensor)).get(8)?.[0]);
        return [textOf(own.get(1)?.[0]), shown] as const;
      }),
    );
    events.push({
      step: Number(fields.get(2)?.[0]),
      ...(version === undefined ? {} : { version: textOf(version) }),
      isRestart: fields.has(7),
      values: Object.fromEntries(values),
    });
  }
  return events;
}

async function filesOf(folder: string): Promise<ReadEvent[][]> {
  const names = (await readdir(folder)).sort();
  return Promise.all(names.map(async (name) => readEvents(await readFile(join(folder, name)))));
}

describe('an event file', () => {
  it('has the check sums of its format', () => {
    expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283); // RFC 3720, appendix B.4, and others
    expect(crc32c(new Uint8Array(32))).toBe(0x8a9136aa);
  });

  it('has the bytes that TensorBoard’s own writer gives an event', () => {
    const event = metricsEvent({ atMs: 1_700_000_000_500, step: 300 }, { 'reward/mean': 0.5 });
    // tensorboard 2.21: Event(wall_time=1700000000.5, step=300, summary=Summary(value=[Summary.Value(tag='reward/mean', simple_value=0.5)])), written by RecordWriter
    expect(record(event).toString('hex')).toBe(
      '220000000000000078113dfd0900002040fc54d94110ac022a140a120a0b7265776172642f6d65616e150000003fa80fccf6',
    );
  });

  it('holds the settings, and each step’s numbers', async () => {
    const folder = join(directory.path, 'run');
    const run = await openRun({ folder, config: { rate: 0.1 }, seeds: { seed: 7 }, trackers: [tensorBoardTracker()] });
    await run.step(1, { 'reward/mean': 0.25, 'loss:sum': -3 });
    await run.step(2, { 'validation/accuracy': 0.5 }, 'validation');
    const { trackers } = await run.finish();
    expect(trackers).toEqual({ tensorboard: { link: join(folder, 'tensorboard'), sent: 2, lost: 0 } });
    const [[version, settings, ...steps] = []] = await filesOf(join(folder, 'tensorboard'));
    expect(version).toMatchObject({ version: 'brain.Event:2' });
    expect(settings?.values.settings).toMatch(/^ {4}\{\n {6}"rate": 0\.1\n[\s\S]*"seed\.seed": "7"/);
    expect(steps).toMatchObject([
      { step: 1, values: { 'reward/mean': 0.25, 'loss:sum': -3 } },
      { step: 2, values: { 'validation/accuracy': 0.5 } },
    ]);
  });

  it('holds each alarm as a text under its name, also one that no numbers come after', async () => {
    const folder = join(directory.path, 'run');
    const run = await openRun({ folder, config: {}, trackers: [tensorBoardTracker()] });
    await run.onStep({ type: 'step-end', step: 1, metrics: { 'reward/mean': 0.25 }, alarms: [alarmAt(1)] });
    await run.step(2, { 'reward/mean': 0.5 });
    await run.alarms([alarmAt(3, 'stop')]);
    const { trackers } = await run.finish('failed');
    expect(trackers?.tensorboard).toMatchObject({ sent: 3, lost: 0 });
    const [[, , ...events] = []] = await filesOf(join(folder, 'tensorboard'));
    expect(events.map(({ step, values }) => ({ step, values }))).toEqual([
      { step: 1, values: { 'reward/mean': 0.25 } },
      {
        step: 1,
        values: { 'guard/learning-rate': expect.stringMatching(/^guard\/learning-rate \[warn\] at step 1: 0\.01/) },
      },
      { step: 2, values: { 'reward/mean': 0.5 } },
      { step: 3, values: { 'guard/learning-rate': expect.stringMatching(/^guard\/learning-rate \[stop\] at step 3/) } },
    ]);
  });

  it('of a run that goes on tells readers to forget the steps that are done again', async () => {
    const folder = join(directory.path, 'run');
    const options = { folder, config: {} };
    const events = join(directory.path, 'events');
    const trackers = () => [tensorBoardTracker({ folder: events })];
    const first = await openRun({ ...options, trackers: trackers() });
    for (let step = 1; step <= 3; step++) await first.step(step, { 'loss/mean': step });
    await first.finish('interrupted');
    const second = await openRun({ ...options, resumeAfter: 1, trackers: trackers() });
    await second.step(2, { 'loss/mean': 20 });
    await second.finish();
    const files = await filesOf(events);
    expect(files).toHaveLength(2);
    expect(files.map((file) => file.filter(({ isRestart }) => isRestart).map(({ step }) => step))).toEqual([[], [2]]);
    expect(files[1]?.at(-1)).toMatchObject({ step: 2, values: { 'loss/mean': 20 } });
  });
});
