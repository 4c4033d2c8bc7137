/** A run as it is seen in a terminal: a panel that is redrawn in place, or plain lines where the output is no terminal. */
import { createLogUpdate } from 'log-update';
import picocolors from 'picocolors';
import type { EpisodeRollout } from '../episodes/run-episode.js';
import { escapeText } from '../escape-text.js';
import { type Alarm, alarmText } from '../guard/alarm.js';
import type { Metrics } from '../training/grpo-metrics.js';
import type { Rollout } from '../training/rollouts.js';
import { type PanelState, panelLines } from './panel.js';
import { stepLine, validationText } from './step-text.js';

/** A step of any loop. */
export interface ShownStep {
  readonly type: 'step-end' | 'step-skipped';
  readonly step: number;
  readonly totalSteps: number;
  readonly metrics: Metrics;
  readonly reason?: string;
  /** Shown in the panel until the end; plain lines have one for each. */
  readonly alarms?: readonly Alarm[];
  readonly warnings?: readonly string[];
  readonly groups?: readonly {
    readonly problem: { readonly question?: string };
    readonly rollouts: readonly (Rollout | EpisodeRollout)[];
  }[];
}

/** A measurement on what isn't trained on. */
export interface ShownValidation {
  readonly step: number;
  readonly totalSteps: number;
  readonly metrics: Metrics;
}

export interface TerminalViewOptions {
  /** Such as `process.stdout`. */
  readonly stream: NodeJS.WritableStream & {
    readonly isTTY?: boolean;
    readonly columns?: number;
    readonly rows?: number;
  };
  readonly title: string;
  /** Redraw in place; default whether the stream is a terminal, and none that can't (`TERM=dumb`). */
  readonly live?: boolean;
  /** Default: as the environment says (`NO_COLOR`, `FORCE_COLOR`) where it is live. */
  readonly color?: boolean;
  /** Sampled answers to show in the panel; default 4. */
  readonly samples?: number;
}

/** Shows steps as they end. Disposing leaves the last panel standing and gives the cursor back. Its functions are bound, so they can be handed to a loop. */
export interface TerminalView extends Disposable {
  readonly onStep: (step: ShownStep) => void;
  readonly onValidation: (validation: ShownValidation) => void;
  /** A line of its own, which stays: above the panel, where there is one. */
  readonly onNotice: (notice: { readonly message: string }) => void;
  close(): void;
}

/** What a model wrote is escaped before it is drawn, so it can't write to the terminal. */
export function createTerminalView(options: TerminalViewOptions): TerminalView {
  const { stream, live = stream.isTTY === true && process.env.TERM !== 'dumb' } = options;
  return live ? createPanel(options) : createLines(stream);
}

function createLines(stream: NodeJS.WritableStream): TerminalView {
  const close = (): void => undefined;
  const line = (text: string): void => void stream.write(`${text}\n`);
  return {
    onStep: (step) => {
      line(`${stepLine(step)}${step.type === 'step-skipped' ? `  skipped: ${step.reason ?? ''}` : ''}`);
      for (const alarm of step.alarms ?? []) line(escapeText(alarmText(alarm)));
    },
    onValidation: ({ step, totalSteps, metrics }) =>
      line(`step ${step}/${totalSteps}  held-out ${validationText(metrics)}`),
    onNotice: ({ message }) => line(escapeText(message)),
    close,
    [Symbol.dispose]: close,
  };
}

/** The last ones, in the panel. */
const shownAlarms = 4;

function createPanel(options: TerminalViewOptions): TerminalView {
  const { stream, title, color = picocolors.isColorSupported, samples = 4 } = options;
  // true: log-update asks for a WriteStream, of which it uses only write, columns and rows
  const draw = createLogUpdate(stream as NodeJS.WriteStream);
  const paint = picocolors.createColors(color);
  let state: PanelState = {
    ...{ title, step: undefined, curve: [], stepTimes: [], skipped: 0, alarms: [], validations: [], totalSteps: 0 },
  };
  let isClosed = false;
  const show = (next: Partial<PanelState>): void => {
    if (isClosed) return;
    state = { ...state, ...next };
    const columns = Math.min(stream.columns ?? 80, 120);
    draw(panelLines(state, { columns, rows: stream.rows ?? Number.POSITIVE_INFINITY, samples, paint }).join('\n'));
  };
  const close = (): void => {
    if (isClosed) return;
    isClosed = true;
    draw.done();
  };
  return {
    onStep: (step) => {
      const { metrics, totalSteps } = step;
      const value = metrics['reward/mean'] ?? metrics['loss/mean'];
      const time = metrics['time/step_ms'] ?? metrics['time/train_ms'];
      show({
        ...{ step, totalSteps },
        curve: value === undefined ? state.curve : [...state.curve, value],
        stepTimes: time === undefined ? state.stepTimes : [...state.stepTimes.slice(-9), time],
        alarms: [...state.alarms, ...(step.alarms ?? [])].slice(-shownAlarms),
        skipped: state.skipped + (step.type === 'step-skipped' ? 1 : 0),
      });
    },
    onValidation: (validation) =>
      show({ validations: [...state.validations.slice(-9), validation], totalSteps: validation.totalSteps }),
    onNotice: ({ message }) => {
      if (!isClosed) draw.clear();
      stream.write(`${escapeText(message)}\n`);
      if (state.totalSteps > 0) show({});
    },
    close,
    [Symbol.dispose]: close,
  };
}
