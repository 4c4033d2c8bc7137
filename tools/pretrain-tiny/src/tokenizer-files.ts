/** The tokenizer of the bundled model: one token for each printable ASCII character and the newline, and five special tokens. */

export const specialTokens = ['<|pad|>', '<|unk|>', '<|eos|>', '<|im_start|>', '<|im_end|>'] as const;
export type SpecialToken = (typeof specialTokens)[number];

/** Printable ASCII, space to tilde, after the newline. */
const characters = ['\n', ...Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i))];

/** Every token, in the order of their ids. */
export const vocabulary: readonly string[] = [...specialTokens, ...characters];

/** Its place in the vocabulary. */
export function specialTokenId(token: SpecialToken): number {
  return specialTokens.indexOf(token);
}

const chatTemplate = [
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}",
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
].join('');

/**
 * `tokenizer.json`, `tokenizer_config.json` and `generation_config.json`, as Hugging Face libraries read them. It is a BPE
 * without merges, so a text's tokens are its characters; characters outside the vocabulary become `<|unk|>`.
 */
export function tokenizerFiles({
  contextLength,
}: {
  readonly contextLength: number;
}): Readonly<Record<string, object>> {
  const addedTokens = specialTokens.map((content, id) => ({
    id,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  }));
  return {
    'tokenizer.json': {
      version: '1.0',
      truncation: null,
      padding: null,
      added_tokens: addedTokens,
      normalizer: null,
      pre_tokenizer: null,
      post_processor: null,
      decoder: { type: 'Fuse' },
      model: {
        type: 'BPE',
        dropout: null,
        unk_token: '<|unk|>',
        continuing_subword_prefix: null,
        end_of_word_suffix: null,
        fuse_unk: false,
        byte_fallback: false,
        ignore_merges: false,
        vocab: Object.fromEntries(vocabulary.map((token, id) => [token, id])),
        merges: [],
      },
    },
    'tokenizer_config.json': {
      tokenizer_class: 'PreTrainedTokenizerFast',
      model_max_length: contextLength,
      clean_up_tokenization_spaces: false,
      eos_token: '<|eos|>',
      pad_token: '<|pad|>',
      unk_token: '<|unk|>',
      additional_special_tokens: ['<|im_start|>', '<|im_end|>'],
      chat_template: chatTemplate,
    },
    'generation_config.json': {
      eos_token_id: [specialTokenId('<|eos|>'), specialTokenId('<|im_end|>')],
      pad_token_id: specialTokenId('<|pad|>'),
      do_sample: true,
      temperature: 1.0,
    },
  };
}
