import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { escapeText, truncateText } from '../escape-text.js';
import type { Alarm } from '../guard/alarm.js';
import { Bandit, copyEnvironment } from '../testing/bandit.js';
import { runGrpo } from '../training/grpo.js';
import { areaChart } from './area-chart.js';
import { openMetricsLog } from './metrics-log.js';
import { createTerminalView, type ShownStep } from './terminal-view.js';

class Screen extends Writable {
  text = '';
  readonly columns = 100;
  readonly isTTY: boolean;

  constructor(isTTY: boolean) {
    super({ decodeStrings: false });
    this.isTTY = isTTY;
  }

  override _write(chunk: string | Buffer, _encoding: string, done: () => void): void {
    this.text += String(chunk);
    done();
  }
}

const step = (reward: number, text: string): ShownStep => ({
  type: 'step-end',
  step: 3,
  totalSteps: 30,
  metrics: {
    'reward/mean': reward,
    'reward/std_within_group': 0.25,
    'kl/base': 0.0012,
    'completion/length_mean': 4.125,
    'ratio/mean': 1,
    'ratio/min': 0.99,
    'ratio/max': 1.01,
    'groups/dead': 1,
    'tokens/sampled': 512,
    'tokens/trained': 640,
    'time/sample_ms': 1234,
    'time/train_ms': 800,
  },
  groups: [
    {
      problem: { question: '1+1=' },
      rollouts: [
        { text, grade: { status: 'ok', reward: 1 }, sequence: { tokens: [1], logprobs: [0], stopReason: 'stop' } },
      ],
    },
  ],
});

describe('plain lines', () => {
  it('hold one step each, without escape codes', () => {
    const screen = new Screen(false);
    using view = createTerminalView({ stream: screen, title: 'run' });
    view.onStep(step(0.5, '2'));
    view.onStep({ ...step(0.5, '2'), type: 'step-skipped', reason: 'nothing to learn' });
    expect(screen.text.split('\n')).toEqual([
      'step 3/30  reward 0.500 ±0.250  kl 0.0012  length 4.1  ratio 1.000 [0.990, 1.010]  dead 1  sampled 512  trained 640  sample 1.2s  train 0.8s',
      expect.stringMatching(/ {2}skipped: nothing to learn$/),
      '',
    ]);
    expect(screen.text).not.toContain('\u001b');
  });
});

describe('the panel', () => {
  it('draws the curve, the phases and an escaped answer', () => {
    const screen = new Screen(true);
    using view = createTerminalView({ stream: screen, title: 'grpo', color: false });
    view.onStep(step(0, 'x'));
    screen.text = '';
    view.onStep(step(1, '\u001b[2J\u001b]0;owned\u0007\u202e2\n'));
    expect(screen.text).toMatch(/1\.00 .*█\n +reward .*█\n +.*█\n +0 ▁+█+\n/);
    expect(screen.text).toContain('grpo  step 3/30');
    expect(screen.text).toMatch(/sample {4}█+░+ 1\.23 s/);
    expect(screen.text).toContain('1+1= → \\x1b[2J\\x1b]0;owned\\x07\\u{202e}2\\n  (reward 1)');
    // What is left of escape codes are the panel's own: cursor moves, line clears, cursor visibility.
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    expect(screen.text.replace(/\u001b\[(?:\d*[AGK]|\d*F|\?25[lh])/g, '')).not.toContain('\u001b');
  });

  it('shows alarms from the step that raised them on; plain lines have one for each', () => {
    const place = { step: 3, times: 1, page: 'docs/guides/guard/kl-zero.md' };
    const alarm: Alarm = { name: 'guard/kl-zero', level: 'warn', seen: 'nothing moves', remedy: 'look', ...place };
    const screen = new Screen(true);
    using panel = createTerminalView({ stream: screen, title: 'grpo', color: false });
    panel.onStep({ ...step(0, 'x'), alarms: [alarm] });
    screen.text = '';
    panel.onStep(step(1, 'y'));
    expect(screen.text).toContain('guard/kl-zero [warn] at step 3: nothing moves. Look. See docs/guides');
    const plain = new Screen(false);
    using lines = createTerminalView({ stream: plain, title: 'grpo' });
    lines.onStep({ ...step(0, 'x'), alarms: [alarm] });
    expect(plain.text).toMatch(/^step 3\/30 .*\nguard\/kl-zero \[warn\] at step 3: .*\.md\n$/);
  });

  it('says how many steps were skipped, and is silent once closed', () => {
    const screen = new Screen(true);
    const view = createTerminalView({ stream: screen, title: 'grpo', color: false });
    view.onStep({ ...step(0, 'x'), type: 'step-skipped', reason: 'all equal' });
    expect(screen.text).toContain('skipped steps: 1 (all equal)');
    view.close();
    view.close();
    const { length } = screen.text;
    view.onStep(step(1, 'y'));
    expect(screen.text).toHaveLength(length);
  });
});

describe('the view of everything else', () => {
  const validation = (step: number, accuracy: number) => ({
    ...{ step, totalSteps: 30 },
    metrics: { 'validation/accuracy': accuracy, 'validation/low': 0.1, 'validation/high': 0.9, 'validation/n': 60 },
  });
  const message = 'epoch 1 has ended\u001b[2J';

  it('is a line each where there is no terminal', () => {
    const screen = new Screen(false);
    using view = createTerminalView({ stream: screen, title: 'run' });
    view.onValidation(validation(10, 0.5));
    view.onNotice({ message });
    expect(screen.text).toBe('step 10/30  held-out 0.500 [0.100, 0.900] n 60\nepoch 1 has ended\\x1b[2J\n');
  });

  it('is in the panel: held-out results, alarms, the time that is left; notices stay above it', () => {
    const screen = new Screen(true);
    using view = createTerminalView({ stream: screen, title: 'grpo', color: false });
    view.onValidation(validation(0, 0.25));
    view.onValidation(validation(2, 0.5));
    const alarm = {
      name: 'guard/kl',
      level: 'warn',
      step: 3,
      seen: 'KL rose',
      remedy: 'lower the rate',
      times: 1,
      page: 'x.md',
    } as const;
    const timed = step(1, '2');
    screen.text = '';
    view.onStep({
      ...timed,
      metrics: { ...timed.metrics, 'time/step_ms': 2000, 'engine/busy_share': 0.75 },
      alarms: [alarm],
    });
    expect(screen.text).toContain('held-out 0.500 [0.100, 0.900] n 60 at step 2; before 0.250');
    expect(screen.text).toContain('guard/kl [warn] at step 3: KL rose. Lower the rate. See x.md');
    expect(screen.text).toContain('2.0 s a step, about 54 s left');
    expect(screen.text).toMatch(/engine {4}█+░+ 75 % busy/);
    screen.text = '';
    view.onNotice({ message });
    expect(screen.text.indexOf('epoch 1 has ended\\x1b[2J\n')).toBeLessThan(screen.text.indexOf('grpo  step 3/30'));
  });

  it('fits a narrow and low window', () => {
    const screen = Object.assign(new Screen(true), { rows: 6 });
    Object.defineProperty(screen, 'columns', { value: 32 });
    using view = createTerminalView({ stream: screen, title: 'a long name of a run', color: false });
    view.onStep(step(1, 'x'.repeat(200)));
    const lines = stripVTControlCharacters(screen.text).trimEnd().split('\n');
    expect(lines.length).toBeLessThanOrEqual(5);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(32);
  });
});

it('a curve of several rows is whole, however many its values', () => {
  const options = { rows: 2, low: 0, high: 1 };
  expect(areaChart([0, 0.5, 1], { ...options, columns: 10 })).toEqual(['  █', '▁██']);
  const ramp = Array.from({ length: 100 }, (_, i) => i / 99);
  const [top, bottom] = areaChart(ramp, { ...options, columns: 4 });
  expect([top, bottom]).toEqual(['  ▂▆', '▂▆██']);
});

describe('the metrics file', () => {
  let directory = '';
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'loopwright-loops-'));
  });
  afterEach(() => rm(directory, { recursive: true }));

  it('gets one line of numbers a step and nothing that was sampled, and keeps what was there', async () => {
    const path = join(directory, 'metrics.jsonl');
    for (let run = 0; run < 2; run++) {
      await using log = await openMetricsLog(path, { now: () => 0 });
      const environment = { ...copyEnvironment, draw: () => ({ id: 'x', question: '3=', answer: 'SECRET' }) };
      await runGrpo({ training: new Bandit(), environment, steps: 2, maxTokens: 1, onStep: log.onStep });
    }
    const text = await readFile(path, 'utf8');
    expect(text).not.toContain('SECRET');
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines.map((line) => line.step)).toEqual([1, 2, 1, 2]);
    for (const { type, time, ...numbers } of lines) {
      expect([String(type), time]).toEqual([expect.stringMatching(/^step-/), '1970-01-01T00:00:00.000Z']);
      expect(Object.values(numbers).every((value) => typeof value === 'number')).toBe(true);
      expect(numbers).toHaveProperty('reward/mean');
    }
  });

  it('is closed once, however often', async () => {
    const log = await openMetricsLog(join(directory, 'metrics.jsonl'));
    await log.close();
    await log.close();
  });
});

describe('escaped text', () => {
  it('shows control, invisible and direction-changing characters, and nothing else changed', () => {
    expect(escapeText('a\tb\r\n\\\u0000\u009b\u200d\u2028\ud800é你😀')).toBe(
      'a\\tb\\r\\n\\\\\\x00\\x9b\\u{200d}\\u{2028}\\u{d800}é你😀',
    );
  });

  it('is cut by columns, not by characters', () => {
    expect(truncateText('你好吗', 5)).toBe('你好…');
    expect(truncateText('abc', 3)).toBe('abc');
  });
});
