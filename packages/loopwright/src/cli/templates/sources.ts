/** The small files of a model that say how chats become tokens. */
import { openModelFiles, readTokenizerSources } from '@loopwright/engine';
import { complaint } from '@loopwright/protocol';
import type { TokenizerSources } from '@loopwright/text';
import type { CommandContext } from '../context.js';
import { modelPath } from '../model-path.js';

export interface ModelText {
  readonly path: string;
  readonly sources: TokenizerSources;
}

/** @param model path or name @throws `unknown_model`; `model_invalid` for a model without tokenizer.json */
export async function modelText(model: string, context: CommandContext): Promise<ModelText> {
  const path = await modelPath(model, context);
  const sources = await readTokenizerSources(await openModelFiles(path));
  if (sources !== undefined) return { path, sources };
  throw complaint({
    code: 'model_invalid',
    field: 'tokenizer.json',
    expected: `a file in ${path}`,
    got: 'no such file',
    remedy: 'give a Hugging Face model with a fast tokenizer',
  });
}
