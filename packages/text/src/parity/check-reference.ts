/** A renderer against what another program made of the same chat. */
import { prepareMessages } from '../renderers/prepare-messages.js';
import type { RenderedMessages, Renderer } from '../renderers/renderer.js';
import { messageOf, renderOptions } from './check-case.js';
import { checkTokens } from './check-tokens.js';
import { textDifference } from './difference.js';
import { type CheckName, different, type Finding, notComparable, type Outcome, same } from './finding.js';
import type { ReferenceCase } from './parity-case.js';

export function checkReference(renderer: Renderer, row: ReferenceCase, controlTexts: readonly string[]): Finding[] {
  const named = (check: CheckName, outcome: Outcome): Finding => ({ case: row.case, check, ...outcome });
  const prepared = prepareMessages(row.messages, renderer.family);
  if (JSON.stringify(prepared) !== JSON.stringify(row.messages)) {
    const reason =
      'arguments given as text, or ids of calls that the template refuses: both are put into one form here';
    return [named('reference-text', notComparable(reason))];
  }
  let rendered: RenderedMessages;
  try {
    rendered = renderer.render(row.messages, renderOptions(row));
  } catch (error) {
    if (row.expected === undefined) return [named('reference-text', same)];
    return [named('reference-text', different(`refused here, and not there: ${messageOf(error)}`))];
  }
  if (row.expected === undefined) return [named('reference-text', different('refused there, and not here'))];
  const written = textDifference(row.expected, rendered.text);
  const text = named('reference-text', written === undefined ? same : different('other text', written));
  if (row.ids === undefined || written !== undefined) return [text];
  const said = JSON.stringify([row.messages, row.tools, row.kwargs]);
  const isForged = controlTexts.some((control) => said.includes(JSON.stringify(control).slice(1, -1)));
  return [text, named('reference-tokens', checkTokens(renderer, rendered, { isForged, reference: row.ids }))];
}
