/** Trackers that are set by the environment. */
import { type MlflowOptions, type Tracker, mlflowTracker as tracker } from '@loopwright/loops/node';
import { complaint } from '@loopwright/protocol';
import { readSettings } from './config.js';

/**
 * Sends a run's settings, facts and numbers to an MLflow server, in the background and in batches. Server, experiment and credentials are those of the
 * environment, by the variables that MLflow itself reads, unless they are given: `MLFLOW_TRACKING_URI`, `MLFLOW_EXPERIMENT_NAME`, `MLFLOW_TRACKING_TOKEN`
 * or `MLFLOW_TRACKING_USERNAME` and `MLFLOW_TRACKING_PASSWORD`. A server that is down costs the run nothing but a warning: what waits is tried again.
 *
 * @throws `invalid_argument` without an address, or with one that isn't of HTTP
 * @example
 * await using run = await openRun({ folder: 'runs/math', config, trackers: [mlflowTracker()] });
 */
export function mlflowTracker(options: Partial<MlflowOptions> = {}): Tracker {
  const { uri, experiment, ...credentials } = readSettings().mlflow;
  const address = options.uri ?? uri;
  if (address === undefined) {
    throw complaint({
      field: 'mlflow.uri',
      expected: 'the address of a server, such as http://127.0.0.1:5000',
      got: 'nothing',
      remedy: 'start one with `mlflow server`, and set MLFLOW_TRACKING_URI',
    });
  }
  const isOwn = options.uri !== undefined && options.uri !== uri;
  return tracker({
    ...(experiment === undefined ? {} : { experiment }),
    ...(isOwn ? {} : credentials), // those of one server are not for another
    ...options,
    uri: address,
  });
}
