import type { Tokenizer } from '../tokenizer.js';

/** Whether a prompt ends within the model's reasoning: some templates begin the turn with its mark themselves. */
export function endsInThought(tokenizer: Pick<Tokenizer, 'decode'>, prompt: readonly number[]): boolean {
  const end = tokenizer.decode(prompt.slice(-12), { skipSpecialTokens: false });
  return end.trimEnd().endsWith('<think>');
}
