/** Whether the renderer of a model does what its template and, where there is one, another program does. */
import { type Renderer, rendererFor } from '../renderers/renderer.js';
import type { LoadTokenizerOptions } from '../tokenizer.js';
import { checkCase } from './check-case.js';
import { checkReference } from './check-reference.js';
import type { Finding } from './finding.js';
import type { ReferenceFile } from './parity-case.js';
import { referenceProgram } from './reference-program.js';
import { paritySuite, type SuiteCase } from './suite.js';

export interface RendererReport {
  readonly renderer: Renderer;
  /** Chats that were rendered. */
  readonly cases: number;
  readonly findings: readonly Finding[];
}

/**
 * Checks the renderer that {@link rendererFor} picks for a model: over a fixed suite of chats against the model's own template, and against the renderings of a
 * reference file where one is given.
 *
 * A renderer runs the template of its model, by the Jinja of this package. So the checks without a reference show faults of what is done around it (messages put into one
 * form, tokens, what is whose, reading back), and not a template that this Jinja understands otherwise than Python's: for that, give a reference.
 *
 * @throws as `rendererFor`
 */
export function checkRenderer(
  sources: LoadTokenizerOptions,
  { reference }: { readonly reference?: ReferenceFile } = {},
): RendererReport {
  const told = reference?.now;
  const renderer = rendererFor({ ...sources, ...(told === undefined ? {} : { now: () => new Date(told) }) });
  const cases = suiteOf(renderer);
  const findings = cases.flatMap((row) => checkCase(renderer, row));
  const others = reference?.cases ?? [];
  const compared = others.flatMap((row) => checkReference(renderer, row, controlTextsOf(renderer)));
  return { renderer, cases: cases.length + others.length, findings: [...findings, ...compared] };
}

/** A Python program that prints a reference file of the suite. @param model directory of the model, where Python is to find it */
export function referenceProgramFor(sources: LoadTokenizerOptions, model: string): string {
  return referenceProgram(model, suiteOf(rendererFor(sources)));
}

function suiteOf(renderer: Renderer): readonly SuiteCase[] {
  const { thinkingSwitch } = renderer.tokenizer.turnFormat;
  return paritySuite({ controlTexts: controlTextsOf(renderer).slice(0, mostControlTexts), thinkingSwitch });
}

/** Some vocabularies have hundreds of reserved ones; those of the format come first. */
const mostControlTexts = 40;

function controlTextsOf({ tokenizer, stopTokenIds }: Renderer): readonly string[] {
  const ids = Array.from({ length: tokenizer.vocabSize }, (_, id) => id);
  const texts = [...stopTokenIds, ...ids].flatMap((id) => tokenizer.controlToken(id) ?? []);
  return [...new Set([...tokenizer.turnFormat.markTokens, ...texts])];
}
