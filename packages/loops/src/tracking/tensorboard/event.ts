/** Events as TensorBoard reads them. Field numbers are those of its event.proto, summary.proto and tensor.proto. */
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import type { Metrics } from '../../training/grpo-metrics.js';

export interface EventTime {
  readonly atMs: number;
  readonly step: number;
}

/** What each file begins with. */
export function versionEvent(atMs: number): Uint8Array {
  return event({ atMs, step: 0 }).uint32(tag(3, bytesType)).string('brain.Event:2').finish();
}

/** Tells readers that what they have of this step and later ones was left behind. */
export function restartEvent(time: EventTime): Uint8Array {
  const start = 1;
  return event(time).uint32(tag(7, bytesType)).fork().uint32(tag(1, varintType)).int32(start).join().finish();
}

/** One value for each metric, as float32. */
export function metricsEvent(time: EventTime, metrics: Metrics): Uint8Array {
  const writer = event(time).uint32(tag(5, bytesType)).fork();
  for (const [name, value] of Object.entries(metrics)) {
    writer.uint32(tag(1, bytesType)).fork();
    writer.uint32(tag(1, bytesType)).string(name);
    writer.uint32(tag(2, fixed32Type)).float(value);
    writer.join();
  }
  return writer.join().finish();
}

/** A text of the run, in Markdown. */
export function textEvent(
  time: EventTime,
  { name, text }: { readonly name: string; readonly text: string },
): Uint8Array {
  const stringType = 7;
  const writer = event(time).uint32(tag(5, bytesType)).fork().uint32(tag(1, bytesType)).fork();
  writer.uint32(tag(1, bytesType)).string(name);
  const plugin = writer.uint32(tag(9, bytesType)).fork().uint32(tag(1, bytesType)).fork();
  plugin.uint32(tag(1, bytesType)).string('text').join().join();
  const tensor = writer.uint32(tag(8, bytesType)).fork();
  tensor.uint32(tag(1, varintType)).int32(stringType);
  tensor.uint32(tag(2, bytesType)).bytes(new Uint8Array()); // a scalar
  tensor.uint32(tag(8, bytesType)).string(text).join();
  return writer.join().join().finish();
}

const varintType = 0;
const fixed64Type = 1;
const bytesType = 2;
const fixed32Type = 5;

function tag(field: number, type: number): number {
  return (field << 3) | type;
}

function event({ atMs, step }: EventTime): BinaryWriter {
  return new BinaryWriter()
    .uint32(tag(1, fixed64Type))
    .double(atMs / 1000)
    .uint32(tag(2, varintType))
    .int64(step);
}
