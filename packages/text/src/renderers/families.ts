/** The chat formats that are known by name: how a template is recognised, and the control tokens that end its messages. */

export type ChatFamily = 'chatml' | 'qwen2.5' | 'qwen3' | 'llama3' | 'gpt-oss' | 'mistral' | 'gemma3' | 'other';

/** What is to be known of a format beside its template. */
export interface FamilyMarks {
  /** Control tokens that end a turn of the model; sampling stops at them. Empty: the end-of-sequence tokens of the files. */
  readonly turnEnds: readonly string[];
  /** What ends a message of anybody, control tokens and the template's own text. Empty: not known. */
  readonly messageEnds: readonly string[];
  /** Ends of messages that a template writes into one turn of its own, as several tool results. */
  readonly innerEnds: readonly string[];
}

const chatml: FamilyMarks = {
  turnEnds: ['<|im_end|>'],
  messageEnds: ['<|im_end|>'],
  innerEnds: ['</tool_response>'],
};

export const familyMarks: Readonly<Record<ChatFamily, FamilyMarks>> = {
  chatml,
  'qwen2.5': chatml,
  qwen3: chatml,
  llama3: { turnEnds: ['<|eot_id|>', '<|eom_id|>'], messageEnds: ['<|eot_id|>', '<|eom_id|>'], innerEnds: [] },
  // `<|end|>` ends a message in the middle of a turn: reasoning, or what is said before a call.
  'gpt-oss': {
    turnEnds: ['<|return|>', '<|call|>'],
    messageEnds: ['<|return|>', '<|call|>', '<|end|>'],
    innerEnds: [],
  },
  mistral: { turnEnds: ['</s>'], messageEnds: ['</s>', '[/INST]', '[/TOOL_RESULTS]'], innerEnds: [] },
  gemma3: { turnEnds: ['<end_of_turn>'], messageEnds: ['<end_of_turn>'], innerEnds: [] },
  other: { turnEnds: [], messageEnds: [], innerEnds: [] },
};

/** @param template the source of a chat template; undefined where there is none */
export function chatFamilyOf(template: string | undefined): ChatFamily {
  if (template === undefined) return 'other';
  const has = (text: string): boolean => template.includes(text);
  if (has('<|channel|>') && has('<|call|>')) return 'gpt-oss';
  if (has('<|start_header_id|>')) return 'llama3';
  if (has('<start_of_turn>')) return 'gemma3';
  if (has('[INST]') && !has('<<SYS>>')) return 'mistral';
  if (!has('<|im_start|>')) return 'other';
  if (has('</think>') || has('reasoning_content')) return 'qwen3';
  return has('<tool_call>') ? 'qwen2.5' : 'chatml';
}
