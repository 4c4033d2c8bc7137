import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { Console } from '../console.js';
import { DownloadProgress } from './download-progress.js';

function setUp({ isTTY }: { readonly isTTY: boolean }) {
  const [stdout, stderr] = [new PassThrough(), Object.assign(new PassThrough(), { isTTY })];
  let nowMs = 0;
  const console = new Console({ stdout, stderr, debug: false });
  const progress = new DownloadProgress(console, () => nowMs);
  const show = (atMs: number, doneBytes: number) => {
    nowMs = atMs;
    progress.show({ type: 'pull-progress', file: 'model.safetensors', doneBytes, totalBytes: 4_000_000 });
  };
  const written = (stream: PassThrough) => String(stream.read() ?? '');
  return { console, progress, show, out: () => written(stdout), err: () => written(stderr) };
}

it('is one line on a terminal, once a second, with the speed of what came now', () => {
  const { progress, show, out, err } = setUp({ isTTY: true });
  show(0, 1_000_000); // there before
  show(500, 1_500_000);
  expect(err()).toBe('');
  show(1000, 2_000_000);
  expect(err()).toBe('\r\x1b[K50.0 % of 4.0 MB, 1.0 MB/s, model.safetensors');
  progress.clear();
  expect(err()).toBe('\r\x1b[K');
  expect(out()).toBe('');
});

it('is an event for programs, and nothing in a log', () => {
  const log = setUp({ isTTY: false });
  log.show(5000, 2_000_000);
  expect(log.err() + log.out()).toBe('');
  const { console, show, out } = setUp({ isTTY: false });
  console.useJson();
  show(0, 0);
  show(2000, 3_000_000);
  expect(JSON.parse(out())).toEqual({
    type: 'pull-progress',
    file: 'model.safetensors',
    doneBytes: 3_000_000,
    totalBytes: 4_000_000,
    bytesPerSecond: 1_500_000,
  });
});
