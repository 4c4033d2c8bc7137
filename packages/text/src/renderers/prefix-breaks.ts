/** Where a template writes earlier turns otherwise once a chat goes on. */
import type { ChatMessage } from '../template/messages.js';
import type { Renderer, RenderOptions } from './renderer.js';

/** A turn that can't be in one sequence with what follows it. */
export interface PrefixBreak {
  /** Index of the assistant's message. */
  readonly turn: number;
  /** First token of prompt and turn that is another one in the prompt of the next turn. */
  readonly token: number;
  /** Index of the message that this token belongs to. */
  readonly message: number;
}

export function prefixBreaks(
  renderer: Renderer,
  messages: readonly ChatMessage[],
  options: Omit<RenderOptions, 'addGenerationPrompt' | 'drawn'>,
): PrefixBreak[] {
  const turns = messages.flatMap(({ role }, i) => (role === 'assistant' && i + 1 < messages.length ? [i] : []));
  return turns.flatMap((turn): PrefixBreak[] => {
    const prompt = renderer.render(messages.slice(0, turn), { ...options, addGenerationPrompt: true }).tokens;
    const done = renderer.render(messages.slice(0, turn + 1), options);
    const produced = done.turns.findLast(({ message }) => message === turn);
    const sampled = [...prompt, ...(produced === undefined ? [] : done.tokens.slice(produced.start, produced.end))];
    const next = messages.findIndex(({ role }, i) => i > turn && role === 'assistant');
    const then = renderer.render(messages.slice(0, next < 0 ? messages.length : next), {
      ...options,
      addGenerationPrompt: true,
    });
    const token = sampled.findIndex((id, i) => id !== then.tokens[i]);
    if (token < 0) return [];
    const message = then.spans.findIndex(({ start, end }) => token >= start && token < end);
    return [{ turn, token, message: message < 0 ? turn : message }];
  });
}
