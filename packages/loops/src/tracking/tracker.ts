/** Where the numbers of a run go: one interface for the run folder's own files and for other people's tools. */
import type { JsonValue } from '../data/row.js';
import type { Alarm } from '../guard/alarm.js';
import type { Metrics } from '../training/grpo-metrics.js';

/** A run, as trackers are told of it. */
export interface TrackedRun {
  readonly id: string;
  readonly name: string;
  /** The complete settings, without secrets. */
  readonly config: JsonValue;
  /** Facts that are no settings: versions, commit, seeds, hashes of data. */
  readonly tags: Readonly<Record<string, string>>;
  readonly startedAtMs: number;
  /** The run folder. */
  readonly folder: string;
  /** Tells people at once of what goes wrong without stopping the run: a line, without content and secrets. */
  readonly warn: (message: string) => void;
  /** Where the run goes on: the step after which it does (−1: nothing of it counts), when that was, and what the tracker called it before, if it did. */
  readonly resumed?: { readonly afterStep: number; readonly atMs: number; readonly reference?: string };
}

export interface TrackedStep {
  /** Such as `step-end`; `validation` for measurements of problems that aren't trained on. */
  readonly type: string;
  readonly step: number;
  readonly atMs: number;
  /** Numbers only, all finite; none where there are only alarms to tell of. */
  readonly metrics: Metrics;
  /** Raised since the last step that was told. Nothing in them is content. */
  readonly alarms?: readonly Alarm[];
}

/** How a run ended; see `RunRecord`. */
export interface TrackedEnd {
  readonly status: 'done' | 'interrupted' | 'failed';
  readonly endedAtMs: number;
}

/** What a tracker calls a run. */
export interface TrackerPlace {
  /** To go on by, where the run is resumed. */
  readonly reference?: string;
  /** For people: a URL, or a path. */
  readonly link?: string;
}

/** What became of what a tracker was told; and its place, should it not have been known at the start. */
export interface TrackerReport extends TrackerPlace {
  /** Steps that are where they belong. */
  readonly sent: number;
  /** Steps that could not be sent. */
  readonly lost: number;
  /** Why, in one line, the first time. */
  readonly problem?: string;
}

/**
 * Receives a run's numbers. A tracker never stops a run: what it throws is counted as lost, and told when the run ends. It should not hold the run up
 * either: one that waits for a network queues what it is given.
 */
export interface Tracker {
  /** Of its kind, such as `mlflow`; each once in a run. */
  readonly name: string;
  start(run: TrackedRun): TrackerPlace | Promise<TrackerPlace>;
  step(step: TrackedStep): void | Promise<void>;
  /** Sends what is still waiting. */
  finish(end: TrackedEnd): TrackerReport | Promise<TrackerReport>;
}
