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

/** A name of a model hub, apart from what pins it. */
export interface PinnedName {
  /** `org/name`, or an id or path as it is. */
  readonly repository: string;
  /** A branch, a tag or a commit; undefined where nothing is pinned. */
  readonly revision: string | undefined;
}

/** Takes `org/name@revision` apart. Absolute paths, and ids without an owner, are left whole. */
export function splitPinned(name: string): PinnedName {
  const [, repository = name, revision] = /^(\w[\w.-]*\/\w[\w.-]*)@(.*)$/s.exec(name) ?? [];
  return { repository, revision };
}

/** The id of a model of the hub that means the same files for ever. */
export function pinnedName({ repository, commit }: { readonly repository: string; readonly commit: string }): string {
  return `${repository}@${commit}`;
}
