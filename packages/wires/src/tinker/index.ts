/** The Tinker wire: codecs for servers. */

export type { JsonObject } from '../checks.js';
export { clientConfig, dynamicConfig, holdSeconds } from './defaults.js';
export type { EncodedError } from './errors.js';
export { encodeError, encodeFailure } from './errors.js';
export { parseExactJson } from './exact-json.js';
export type { ModelTurn, PassRequest, PassShape } from './forward-backward.js';
export { decodePassJson, decodePassProto, decodeTurn, encodePassJson, encodePassProto } from './forward-backward.js';
export type { SavedCheckpoint, TrainingRun } from './management.js';
export { encodeCheckpoint, encodeTrainingRun, encodeWeightsInfo, texts } from './management.js';
export type { SaveKind, SavePath } from './names.js';
export { modelId, parseModelId, parseSavePath, saveKinds, savePath } from './names.js';
export type { SampleRequest } from './sampling.js';
export { decodeSampleRequest, encodeSampleJson, encodeSampleProto } from './sampling.js';
export type { LoadRequest, NewModelRequest, SaveRequest } from './training.js';
export { decodeAdam, decodeLoad, decodeNewModel, decodeSave, decodeTtl, trainFlagsOf } from './training.js';
export { decompressZstd } from './zstd.js';
