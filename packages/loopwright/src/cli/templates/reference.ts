/** `loopwright templates reference`: a Python program that makes renderings to compare with. */
import { referenceProgramFor } from '@loopwright/text';
import type { CommandContext } from '../context.js';
import { modelText } from './sources.js';

export async function referenceCommand(model: string, context: CommandContext): Promise<void> {
  const { path, sources } = await modelText(model, context);
  context.console.stdout.write(referenceProgramFor(sources, path));
}
