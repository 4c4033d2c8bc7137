/** The bundled model: where it lies. No code runs it here; an engine does. */
import { fileURLToPath } from 'node:url';

/** A model directory as Hugging Face lays it out: config, weights, tokenizer, and a README that is the model card. */
export const tinyModel: { readonly id: 'loopwright-tiny'; readonly directory: string } = {
  id: 'loopwright-tiny',
  directory: fileURLToPath(new URL('../model', import.meta.url)),
};
