/** What `loopwright export` writes. */
export const exportFormats = ['merged', 'peft', 'gguf'] as const;

export type ExportFormat = (typeof exportFormats)[number];
