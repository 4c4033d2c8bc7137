/** What the sampler does, told as it happens, for tests and measurements. */
export type SamplerEvent =
  /** Keys and values of a prompt but for its last token: computed, or taken from those that are kept. */
  | { readonly type: 'prompt-prefill'; readonly tokens: number; readonly isReused: boolean }
  /** One token for each of so many rows, of so many versions. */
  | { readonly type: 'decode-step'; readonly rows: number; readonly versions: number }
  /** The model over a prompt that is scored, or the head over some of its positions. */
  | { readonly type: 'score-slice' };
