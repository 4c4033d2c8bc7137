/** Fixtures, tolerances and helpers. For tests only. */
export type { ChatModelFiles, ChatModelName } from './chat-models.js';
export { chatControlTokens, chatMarks, chatModelFiles, chatModels, writeChatModel } from './chat-models.js';
export type { CompareOptions } from './compare.js';
export { expectClose, expectSameBits, norm } from './compare.js';
export type { FakeEngineOptions } from './fake-engine.js';
export { FakeEngine } from './fake-engine.js';
export type { FakeHubOptions, FakeRepository, HubRequest } from './fake-hub.js';
export { FakeHub } from './fake-hub.js';
export type {
  FullExpected,
  GgufExpected,
  LoraAdapter,
  LoraBatch,
  LoraBatchDatum,
  LoraExpected,
  LossCase,
  OptimizerCase,
  OptimizerExpected,
  SmolForward,
  SmolLora,
  TinyExpected,
  TinyModel,
  TrainingExpected,
} from './fixtures.js';
export {
  fixturePath,
  loraAdapterDirectory,
  loraAdapters,
  mixedGgufFile,
  readFixtureJson,
  readFixtureTensors,
  tinyModelDirectory,
  tinyModels,
} from './fixtures.js';
export { type FakeMethod, type Hold, type PendingHold, pendingHold } from './hold.js';
export type { TemporaryDirectory } from './temporary.js';
export { rejection, temporaryDirectory } from './temporary.js';
export type { ElementTolerance, SumTolerance, TensorTolerance, Tolerance } from './tolerances.js';
export { tolerances } from './tolerances.js';
