/** Small models of chat, one for each format that is known: templates of our own in that format, and a tokenizer with its control tokens. */
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { fixturePath } from './fixtures.js';

const families = {
  chatml: { specials: ['<|endoftext|>', '<|im_start|>', '<|im_end|>'], bos: undefined, eos: '<|im_end|>', marks: [] },
  'qwen2.5': {
    specials: ['<|endoftext|>', '<|im_start|>', '<|im_end|>'],
    bos: undefined,
    eos: '<|im_end|>',
    marks: ['<tool_call>', '</tool_call>'],
  },
  qwen3: {
    specials: ['<|endoftext|>', '<|im_start|>', '<|im_end|>'],
    bos: undefined,
    eos: '<|im_end|>',
    marks: ['<tool_call>', '</tool_call>', '<tool_response>', '</tool_response>', '<think>', '</think>'],
  },
  llama3: {
    specials: [
      '<|begin_of_text|>',
      '<|end_of_text|>',
      '<|start_header_id|>',
      '<|end_header_id|>',
      '<|eom_id|>',
      '<|eot_id|>',
      '<|python_tag|>',
    ],
    bos: '<|begin_of_text|>',
    eos: '<|end_of_text|>',
    marks: [],
  },
  'gpt-oss': {
    specials: [
      '<|startoftext|>',
      '<|endoftext|>',
      '<|return|>',
      '<|constrain|>',
      '<|channel|>',
      '<|start|>',
      '<|end|>',
      '<|message|>',
      '<|call|>',
    ],
    bos: '<|startoftext|>',
    eos: '<|return|>',
    marks: [],
  },
  mistral: {
    specials: [
      '<s>',
      '</s>',
      '[INST]',
      '[/INST]',
      '[AVAILABLE_TOOLS]',
      '[/AVAILABLE_TOOLS]',
      '[TOOL_CALLS]',
      '[TOOL_RESULTS]',
      '[/TOOL_RESULTS]',
    ],
    bos: '<s>',
    eos: '</s>',
    marks: [],
  },
  gemma3: {
    specials: ['<bos>', '<eos>', '<start_of_turn>', '<end_of_turn>'],
    bos: '<bos>',
    eos: '<eos>',
    marks: [],
  },
} as const;

export type ChatModelName = keyof typeof families;
export const chatModels = Object.keys(families) as ChatModelName[]; // true: the table's own keys

export interface ChatModelFiles {
  readonly tokenizerJson: string;
  readonly tokenizerConfigJson: string;
  readonly chatTemplate: string;
}

/** Texts of the control tokens of a format. */
export function chatControlTokens(name: ChatModelName): readonly string[] {
  return families[name].specials;
}

/** Texts of its added tokens that aren't special, all of them marks of its template. */
export function chatMarks(name: ChatModelName): readonly string[] {
  return families[name].marks;
}

/** Tokens of SmolLM2's vocabulary that are kept: enough for merges to matter, and few enough to load at once. */
const vocabularySize = 3000;
/** Ids below are SmolLM2's own control tokens, in whose place those of the format are. */
const ownControlTokens = 17;

interface Base extends Readonly<Record<string, unknown>> {
  readonly model: { readonly vocab: Readonly<Record<string, number>> };
}
let base: Base | undefined;

function readBase(): Base {
  const text = gunzipSync(readFileSync(fixturePath('tokenizer/smollm2/tokenizer.json.gz'))).toString();
  const whole = JSON.parse(text) as {
    readonly model: { readonly vocab: Readonly<Record<string, number>>; readonly merges: readonly string[] };
  }; // true: a file of this package
  const { vocab, merges } = whole.model;
  const kept = Object.entries(vocab).filter(([, id]) => id >= ownControlTokens && id < vocabularySize);
  const tokens = new Set(kept.map(([token]) => token));
  const model = {
    ...whole.model,
    vocab: Object.fromEntries(kept),
    merges: merges.filter((merge) => tokens.has(merge.replace(' ', ''))),
  };
  return { ...whole, model };
}

/** The files of a tokenizer that has a part of SmolLM2's vocabulary and the control tokens of a format; another template of that format may be given. */
export function chatModelFiles(name: ChatModelName, chatTemplate?: string): ChatModelFiles {
  base ??= readBase();
  const { specials, marks, bos, eos } = families[name];
  const added = (content: string, id: number, special: boolean) => ({
    id,
    content,
    special,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
  });
  const tokens = [
    ...specials.map((text, i) => added(text, i, true)),
    ...marks.map((text, i) => added(text, vocabularySize + i, false)),
  ];
  // Without holes, as the format's other readers count its tokens.
  const first = Array.from({ length: ownControlTokens }, (_, i) => [specials[i] ?? `unused ${i}`, i] as const);
  const model = { ...base.model, vocab: { ...Object.fromEntries(first), ...base.model.vocab } };
  return {
    tokenizerJson: JSON.stringify({ ...base, model, added_tokens: tokens }),
    tokenizerConfigJson: JSON.stringify({
      tokenizer_class: 'PreTrainedTokenizerFast',
      ...(bos === undefined ? {} : { bos_token: bos }),
      eos_token: eos,
    }),
    chatTemplate: chatTemplate ?? readFileSync(fixturePath(`chats/${name}.jinja`), 'utf8'),
  };
}

/** Writes the same as a model directory, without weights. */
export async function writeChatModel(directory: string, name: ChatModelName, chatTemplate?: string): Promise<void> {
  const files = chatModelFiles(name, chatTemplate);
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'tokenizer.json'), files.tokenizerJson);
  await writeFile(join(directory, 'tokenizer_config.json'), files.tokenizerConfigJson);
  await writeFile(join(directory, 'chat_template.jinja'), files.chatTemplate);
}
