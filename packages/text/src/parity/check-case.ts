/** The checks of one chat that need nothing but the model's own files. */
import type { RenderedMessages, Renderer, RenderOptions } from '../renderers/renderer.js';
import type { ChatMessage } from '../template/messages.js';
import { checkParse } from './check-parse.js';
import { checkTokens } from './check-tokens.js';
import { textDifference, tokenDifference } from './difference.js';
import { type CheckName, different, type Finding, notComparable, noted, type Outcome, same } from './finding.js';
import type { ParityCase } from './parity-case.js';
import type { SuiteCase } from './suite.js';

/** Options of a renderer out of those that transformers takes. */
export function renderOptions({ tools, kwargs }: ParityCase): RenderOptions {
  const { add_generation_prompt: begin, continue_final_message: goOn, ...variables } = kwargs;
  return {
    addGenerationPrompt: begin === true,
    continueFinalMessage: goOn === true,
    variables,
    ...(tools === null ? {} : { tools }),
  };
}

/** What the template itself writes. @throws where it refuses */
export function templateText({ tokenizer }: Renderer, { messages, tools, kwargs }: ParityCase): string {
  const { add_generation_prompt: begin, continue_final_message: goOn, ...variables } = kwargs;
  return tokenizer.renderChatTemplate(messages, {
    ...variables,
    addGenerationPrompt: begin === true,
    continueFinalMessage: goOn === true,
    ...(tools === null ? {} : { tools }),
  });
}

export function checkCase(renderer: Renderer, row: SuiteCase): Finding[] {
  const named = (check: CheckName, outcome: Outcome): Finding => ({ case: row.case, check, ...outcome });
  let text: string;
  try {
    text = templateText(renderer, row);
  } catch (error) {
    return [named('text', notComparable(`the template refuses such a chat: ${messageOf(error)}`))];
  }
  let rendered: RenderedMessages;
  try {
    rendered = renderer.render(row.messages, renderOptions(row));
  } catch (error) {
    return [named('text', different(`the renderer refuses what the template takes: ${messageOf(error)}`))];
  }
  const written = textDifference(text, rendered.text);
  const checks: Finding[] = [
    named('text', written === undefined ? same : different('other text than the template’s', written)),
    named('tokens', checkTokens(renderer, rendered, { isForged: row.calm !== undefined })),
    ...(row.calm === undefined ? [] : [named('content', checkContent(renderer, rendered, row.calm))]),
  ];
  const { turns } = rendered;
  if (turns.length === 0) return checks;
  const isOpen = row.kwargs.continue_final_message === true;
  return [
    ...checks,
    ...(isOpen ? [] : [named('turns', checkTurns(renderer, rendered, row))]),
    ...(isOpen ? [] : [named('prefix', checkPrefix(renderer, row))]),
    ...(isOpen ? [] : turns.map((turn) => named('parse', checkParse(renderer, rendered, { turn, row })))),
  ];
}

/** Control tokens in their order have to be those of the same chat without any in its content. */
function checkContent(renderer: Renderer, { tokens }: RenderedMessages, calm: ParityCase): Outcome {
  const { tokenizer } = renderer;
  const controls = (ids: readonly number[]): number[] => ids.filter((id) => tokenizer.controlToken(id) !== undefined);
  const wanted = controls(renderer.render(calm.messages, renderOptions(calm)).tokens);
  const found = tokenDifference(wanted, controls(tokens), (id) => tokenizer.controlToken(id) ?? '');
  return found === undefined ? same : different('control tokens that came out of what messages say', found);
}

/** The last message of a chat only: gpt-oss has `<|end|>` in earlier turns where `<|return|>` was sampled. */
function checkTurns({ stopTokenIds }: Renderer, { tokens, turns }: RenderedMessages, row: ParityCase): Outcome {
  if (stopTokenIds.length === 0) return different('no token ends a turn: sampling would never stop');
  const turn = turns.at(-1)!;
  if (turn.message < row.messages.length - 1) return notComparable('no turn of the model ends the chat');
  const last = tokens[turn.end - 1];
  if (turn.start < turn.end && last !== undefined && stopTokenIds.includes(last)) return same;
  return different('the turn ends without a token that sampling stops at: who trains on it never learns to stop');
}

function checkPrefix(renderer: Renderer, row: ParityCase): Outcome {
  const { addGenerationPrompt: _, ...options } = renderOptions(row);
  // A question behind the last turn, so that this is judged as well.
  const further: readonly ChatMessage[] =
    row.messages.at(-1)?.role === 'assistant' ? [{ role: 'user', content: 'Go on.' }] : [];
  const answers = row.messages.at(-1)?.tool_calls === undefined ? further : [];
  try {
    const breaks = renderer.prefixBreaks([...row.messages, ...answers], options);
    if (breaks.length === 0) return same;
    return noted('the template writes earlier turns otherwise: such chats are trained as several sequences');
  } catch (error) {
    return notComparable(`the template refuses a part of the chat: ${messageOf(error)}`);
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message.split('\n')[0]! : String(error);
}
