/** Reports of a run for programs on Node: metrics as JSON lines, and the live view of a terminal. */
export type { MetricsLog, ReportedStep } from './reporting/metrics-log.js';
export { openMetricsLog } from './reporting/metrics-log.js';
export type { ShownStep, TerminalView, TerminalViewOptions } from './reporting/terminal-view.js';
export { createTerminalView } from './reporting/terminal-view.js';
