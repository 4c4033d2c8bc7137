/** A tiny base model without an engine around it, for tests of what an engine does not hand out. */
import { type TinyModel, temporaryDirectory, tinyModelDirectory } from '@loopwright/testkit';
import { ModelDirectory } from '../../formats/model-directory.js';
import { cacheWeightsFile, readWeights } from '../../formats/weights-file.js';
import { BaseModel } from '../base-model.js';
import { loadRuntime, TensorFactory } from '../ort/runtime.js';

/** Closed with its files at the end of the scope. */
export async function tinyBase(
  model: TinyModel,
  { threads = 1 }: { readonly threads?: number } = {},
): Promise<{ readonly base: BaseModel } & AsyncDisposable> {
  const temporary = await temporaryDirectory();
  await using directory = await ModelDirectory.open(tinyModelDirectory(model));
  const { config } = directory;
  const file = await cacheWeightsFile(directory, { cacheDirectory: temporary.path });
  const { architecture, contextLength, vocabSize } = config;
  const base = new BaseModel({
    card: { id: model, directory: directory.directory, architecture, contextLength, vocabSize, parameters: 0 },
    config,
    weights: await readWeights(file),
    file,
    threads,
    tensors: new TensorFactory(await loadRuntime()),
  });
  return {
    base,
    [Symbol.asyncDispose]: async () => {
      await base[Symbol.asyncDispose]();
      await temporary[Symbol.asyncDispose]();
    },
  };
}
