/** Whether a turn, read back, is the message that it was rendered from. */
import type { RenderedMessages, Renderer, TurnSpan } from '../renderers/renderer.js';
import { parseExactJson } from '../template/exact-json.js';
import { type Difference, textDifference } from './difference.js';
import { different, notComparable, noted, type Outcome, same } from './finding.js';
import type { ParityCase } from './parity-case.js';

export function checkParse(
  renderer: Renderer,
  { tokens, text }: RenderedMessages,
  { turn, row }: { readonly turn: TurnSpan; readonly row: ParityCase },
): Outcome {
  const given = row.messages[turn.message]!;
  const { tools: format } = renderer.tokenizer.turnFormat;
  const calls = Array.isArray(given.tool_calls) ? given.tool_calls : [];
  if (calls.length > 0 && (format === 'none' || format === 'unknown'))
    return notComparable(
      format === 'none' ? 'the template takes no tools' : 'calls in the format of this template can’t be read here',
    );
  const { tokenizer } = renderer;
  const givesBack = (one: string): boolean => tokenizer.decode(tokenizer.encode(one)) === one;
  if (!givesBack(textOf(given.content)) || !givesBack(JSON.stringify(calls)))
    return noted('this vocabulary does not give every text back');
  const { message, broken } = renderer.parse(tokens.slice(turn.start, turn.end), {
    ...(row.tools === null ? {} : { tools: row.tools }),
  });
  if (broken.length > 0) return different(`a call that can’t be read (${broken[0]!.reason})`);
  const read = message.tool_calls ?? [];
  const callText = (call: unknown): string => {
    const { function: inner } = call as {
      readonly function?: { readonly name?: unknown; readonly arguments?: unknown };
    }; // calls of the suite, or of the parser
    const { name, arguments: args } = inner ?? {};
    return JSON.stringify([name, typeof args === 'string' ? parseExactJson(args) : args]);
  };
  const called = textDifference(calls.map(callText).join('\n'), read.map(callText).join('\n'));
  const isFirst = read.length === 1 && calls.length > 1 && callText(calls[0]) === callText(read[0]);
  if (isFirst) return noted('the template writes the first call alone');
  if (called !== undefined) return different('other calls', called);
  const said = textOf(given.content);
  const found = textDifference(said, message.content);
  if (found === undefined) return checkReasoning(given.reasoning_content, message.reasoning_content);
  if (said.trim() === message.content.trim()) return noted('the template trims white space');
  if (calls.length > 0 && message.content === '') return noted('the template leaves text beside calls out');
  if (!text.includes(said.trim())) return noted('the template changes what is said');
  return different('other text', found);
}

function checkReasoning(given: unknown, read: string | undefined): Outcome {
  const wanted = textOf(given);
  if (wanted === (read ?? '')) return same;
  if (read === undefined) return noted('the template leaves the reasoning out');
  const found: Difference | undefined = textDifference(wanted, read);
  return different('other reasoning', found);
}

function textOf(content: unknown): string {
  return typeof content === 'string' ? content : '';
}
