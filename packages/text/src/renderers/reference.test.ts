/**
 * Renderers against renderings of public templates, where a checkout that holds `fixtures/templates` is named by LOOPWRIGHT_SHARED: text and
 * tokens, byte for byte.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ChatModelName, chatModelFiles } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { parseExactJson } from '../template/exact-json.js';
import type { ChatMessage } from '../template/messages.js';
import { loadTokenizer } from '../tokenizer.js';
import { prepareMessages } from './prepare-messages.js';
import { rendererFor } from './renderer.js';

const reference = process.env.LOOPWRIGHT_SHARED;
const now = (): Date => new Date('2025-08-05T12:34:56');

interface ReferenceFile {
  readonly template_file: string;
  readonly special_tokens: Readonly<Record<string, string>>;
  readonly cases: readonly {
    readonly case: string;
    readonly messages: readonly ChatMessage[];
    readonly tools: readonly unknown[] | null;
    readonly kwargs: Readonly<Record<string, unknown>>;
    readonly expected?: string;
  }[];
}

const files: readonly (readonly [string, ChatModelName])[] = [
  ['smollm2', 'chatml'],
  ['qwen2.5', 'qwen2.5'],
  ['qwen3', 'qwen3'],
  ['qwen3-instruct-2507', 'qwen2.5'],
  ['llama3-format.own', 'llama3'],
  ['gpt-oss', 'gpt-oss'],
  ['mistral-nemo', 'mistral'],
  ['gemma3-format.own', 'gemma3'],
];

describe.runIf(reference !== undefined)('a renderer and the reference', () => {
  it.each(files)('%s: the same bytes, as text and decoded again from tokens', (file, family) => {
    const folder = join(reference ?? '', 'fixtures/templates');
    const { template_file, special_tokens, cases } = parseExactJson(
      readFileSync(join(folder, `${file}.json`), 'utf8'),
    ) as unknown as ReferenceFile;
    const template = readFileSync(join(folder, '..', template_file), 'utf8');
    const sources = { ...chatModelFiles(family, template), tokenizerConfigJson: special_tokens };
    const renderer = rendererFor(loadTokenizer({ ...sources, now }));
    expect(renderer.family).toBe(family);
    let compared = 0;
    for (const row of cases) {
      // Text for arguments is rendered as the object it says; transformers quotes it once more.
      const isOtherwise =
        JSON.stringify(prepareMessages(row.messages, renderer.family)) !== JSON.stringify(row.messages);
      if (row.expected === undefined || isOtherwise) continue;
      const { add_generation_prompt: begin, continue_final_message: go, ...variables } = row.kwargs;
      const { tokens, text, spans, turns } = renderer.render(row.messages, {
        addGenerationPrompt: begin === true,
        continueFinalMessage: go === true,
        variables,
        ...(row.tools === null ? {} : { tools: row.tools }),
      });
      expect(text, row.case).toBe(row.expected);
      expect(renderer.tokenizer.decode(tokens, { skipSpecialTokens: false }), row.case).toBe(row.expected);
      for (const [i, { start, end }] of spans.entries()) {
        expect(start, row.case).toBeGreaterThanOrEqual(spans[i - 1]?.end ?? 0);
        expect(end, row.case).toBeGreaterThanOrEqual(start);
      }
      for (const { message, start } of turns) expect(start, row.case).toBeGreaterThanOrEqual(spans[message]!.start);
      compared++;
    }
    console.info(`${file}: ${compared} of ${cases.length}`);
    expect(compared).toBeGreaterThan(25);
  });
});
