/** What there is to know about a base model without loading it. */

export interface ModelCard {
  /** Id under which sessions name it, such as `loopwright-tiny`. */
  readonly id: string;
  /** `llama`, `qwen2`, `qwen3`, … */
  readonly architecture: string;
  /** Tokens at most in a sequence, prompt and answer together. */
  readonly contextLength: number;
  readonly vocabSize: number;
  readonly parameters: number;
  /** Where its config, weights and tokenizer lie: a directory, or a GGUF file. */
  readonly directory: string;
}
