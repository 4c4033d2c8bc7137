/** Where the reference values are, and readers for them. What each file holds is in `fixtures/README.md`. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Tiny random models with stored values. */
export const tinyModels = ['llama-tied', 'llama-untied', 'llama-rope3', 'qwen2', 'qwen3'] as const;
export type TinyModel = (typeof tinyModels)[number];

/** PEFT adapters on them. */
export const loraAdapters = [
  'llama-tied',
  'qwen2',
  'qwen3',
  'llama-tied-lm-head',
  'llama-untied-lm-head',
  'llama-tied-qv-r4',
  'llama-tied-rslora',
] as const;
export type LoraAdapter = (typeof loraAdapters)[number];

/** Absolute path of a file or folder below `fixtures/`. */
export function fixturePath(relative: string): string {
  return fileURLToPath(new URL(`../fixtures/${relative}`, import.meta.url));
}

/** A Hugging Face directory: config.json, model.safetensors. */
export function tinyModelDirectory(model: TinyModel): string {
  return fixturePath(`tiny/${model}`);
}

/** A PEFT directory. */
export function loraAdapterDirectory(adapter: LoraAdapter): string {
  return fixturePath(`lora/${adapter}/adapter`);
}

/** A JSON fixture; the caller says what is in it. */
export function readFixtureJson<T>(relative: string): T {
  return JSON.parse(readFileSync(fixturePath(relative), 'utf8')) as T; // Our own files; the README says what they hold.
}
