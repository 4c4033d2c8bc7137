/** A finished chat in tokens, with a mask of what the model would have produced. */
import { complaint, type LoopwrightError } from '@loopwright/protocol';
import { prepareMessages } from './renderers/prepare-messages.js';
import type { ChatMessage } from './template/messages.js';
import type { EncodeChatOptions, EncodedChat, Tokenizer } from './tokenizer.js';

/** See {@link Tokenizer.encodeChat}. */
export function encodeChat(
  tokenizer: Tokenizer,
  given: readonly ChatMessage[],
  { turns = 'all', ...options }: EncodeChatOptions,
): EncodedChat {
  const messages = prepareMessages(given, tokenizer.turnFormat.family);
  const chat = tokenizer.renderChat(messages, options);
  const assistant = messages.flatMap(({ role }, i) => (role === 'assistant' ? [i] : []));
  const tokens: number[] = [];
  const assistantMask: boolean[] = [];
  let at = 0;
  const append = (end: number, isAssistant: boolean): void => {
    const ids = chat.encode(at, end);
    const produced = isAssistant ? endOfTurn(tokenizer, ids) : 0;
    for (const [i, id] of ids.entries()) {
      tokens.push(id);
      assistantMask.push(i < produced);
    }
    at = end;
  };
  /** Length of the rendering of some first messages, which must be how the whole chat begins. */
  const prefixLength = (count: number, turn: number, addGenerationPrompt: boolean): number => {
    const prefix = tokenizer.renderChatTemplate(messages.slice(0, count), { ...options, addGenerationPrompt });
    if (!chat.text.startsWith(prefix)) throw unstableTurn(turn);
    return prefix.length;
  };
  for (const turn of turns === 'last' ? assistant.slice(-1) : assistant) {
    const start = prefixLength(turn, turn, true);
    const end = turn === messages.length - 1 ? chat.text.length : prefixLength(turn + 1, turn, false);
    if (start < at || end < start) throw unstableTurn(turn);
    refuseSpelledMarks({ text: chat.text.slice(start, end), marked: chat.marked.slice(start, end) }, tokenizer, turn);
    append(start, false);
    append(end, true);
  }
  append(chat.text.length, false);
  return { tokens, assistantMask };
}

/** How many tokens of a turn the model produces: up to its last control token, if only white space follows that. */
function endOfTurn(tokenizer: Tokenizer, ids: readonly number[]): number {
  const last = ids.findLastIndex((id) => tokenizer.controlToken(id) !== undefined);
  if (last < 0 || tokenizer.decode(ids.slice(last + 1)).trim() !== '') return ids.length;
  return last + 1;
}

/** Whole calls and reasoning as text, as data sets in the raw form of a model have them. */
const structures = [/<tool_call>\s*\{[\s\S]*?\}\s*<\/tool_call>/, /^\s*<think>[\s\S]*?<\/think>/];

/**
 * Content is text: a call that is written into it would be trained as the letters of its marks, which the model is never to write. That
 * is refused, as nobody would notice it.
 */
function refuseSpelledMarks(
  { text, marked }: { readonly text: string; readonly marked: string },
  { turnFormat }: Tokenizer,
  turn: number,
): void {
  for (const pattern of structures) {
    const found = pattern.exec(text);
    const mark = turnFormat.plainMarks.find((one) => found?.[0].trimStart().startsWith(one));
    if (found === null || mark === undefined) continue;
    const at = found.index + found[0].indexOf(mark);
    if (marked.startsWith(mark, at)) continue; // the template's own
    throw complaint({
      field: `messages[${turn}].content`,
      expected: `no whole ${mark} as text: content never becomes a mark, so the model would learn to spell it`,
      got: 'a call or reasoning within the text',
      remedy: 'give calls as tool_calls and reasoning as reasoning_content; a renderer’s parse makes both of raw text',
    });
  }
}

function unstableTurn(turn: number): LoopwrightError {
  return complaint({
    field: `messages[${turn}]`,
    expected: 'a turn that the chat template writes in the same way with and without the later ones',
    got: 'a template that writes it otherwise',
    remedy: "train on the last turn only (turns: 'last'), or give one chat for each turn",
  });
}
