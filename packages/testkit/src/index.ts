/** Fixtures, tolerances and helpers. For tests only. */
export type { LoraAdapter, TinyModel } from './fixtures.js';
export {
  fixturePath,
  loraAdapterDirectory,
  loraAdapters,
  readFixtureJson,
  tinyModelDirectory,
  tinyModels,
} from './fixtures.js';
export type { TemporaryDirectory } from './temporary.js';
export { rejection, temporaryDirectory } from './temporary.js';
