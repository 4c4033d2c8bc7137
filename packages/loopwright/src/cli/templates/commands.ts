/** The commands of `loopwright templates` and their options. */
import type { Command } from 'commander';
import type { CommandContext } from '../context.js';
import { withJson } from '../shared-options.js';

const modelHelp = 'directory or GGUF file of a model, or name of a base model';

export function addTemplates(program: Command, context: CommandContext): void {
  const templates = program
    .command('templates')
    .description('check how chats become tokens for a model, against its own template')
    .addHelpText(
      'after',
      `
A check renders a fixed suite of chats and compares: the renderer's text with the template's, byte by byte; its tokens with those of the
text; control tokens with those of the same chat without any in its content; the end of each turn; what the next prompt
makes of it; and each turn, read back, with its message. The renderer runs the model's own template, so this finds what is done wrong
around it. Whether the template is understood as Python's Jinja does is what a reference tells:
  loopwright templates reference MODEL | python - > reference.json   (needs transformers)
  loopwright templates check MODEL --against reference.json
Exit code 1 where anything differs; what can't be compared, and why, is listed. More: docs/guides/renderers.md.`,
    );
  withJson(templates.command('check'))
    .description('say where the renderer of a model and its template, or a reference, differ first')
    .argument('<model>', modelHelp)
    .option('--against <file>', 'JSON with renderings of another program, as `templates reference` makes them')
    .action(async (model, options) => (await import('./check.js')).checkCommand(model, options, context));
  templates
    .command('reference')
    .description('print a Python program that renders the suite by transformers, and prints what --against reads')
    .argument('<model>', modelHelp)
    .action(async (model) => (await import('./reference.js')).referenceCommand(model, context));
}
