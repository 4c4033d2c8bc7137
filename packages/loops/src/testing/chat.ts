/** A chat model whose answers are written down beforehand, with a real tokenizer and templates of our own. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import type { SampledTokens, SampleOptions, SampleOutput } from '@loopwright/client';
import { loadTokenizer, type Tokenizer } from '@loopwright/text';
import type { Sampler } from '../training/clients.js';

const file = fileURLToPath(new URL('../../../testkit/fixtures/tokenizer/smollm2/tokenizer.json.gz', import.meta.url));

const begin = '{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}';
const calls = `{% for c in m.tool_calls or [] %}<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}`;

/** Turns between marks; calls in the Hermes format. */
export const plainTemplate = `{% if tools %}<|im_start|>system
{{ tools | tojson }}<|im_end|>
{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}${calls}<|im_end|>
{% endfor %}${begin}`;

/** Reasoning stands in the last message only, as Qwen3's template has it. */
export const forgetfulTemplate = `{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.reasoning_content and loop.last %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}<|im_end|>
{% endfor %}${begin}`;

export function chatTokenizer(chatTemplate: string = plainTemplate): Tokenizer {
  const tokenizerConfigJson = { eos_token: '<|im_end|>', additional_special_tokens: ['<|im_start|>', '<|im_end|>'] };
  const tokenizerJson = gunzipSync(readFileSync(file)).toString();
  return loadTokenizer({ tokenizerJson, tokenizerConfigJson, chatTemplate });
}

/** What is to be sampled: text, in which control tokens are read as such, or ids. */
export type Scripted = string | readonly number[];

export interface AskedFor {
  readonly prompt: readonly number[];
  readonly options: SampleOptions;
}

/** Answers with what `script` says; `length` where it doesn't end with the end of the turn. */
export class ScriptedSampler implements Sampler {
  readonly asked: AskedFor[] = [];
  open = 0;
  mostOpen = 0;
  readonly #tokenizer: Tokenizer;
  readonly #script: (asked: AskedFor) => Scripted | Promise<Scripted>;

  constructor(tokenizer: Tokenizer, script: (asked: AskedFor) => Scripted | Promise<Scripted>) {
    this.#tokenizer = tokenizer;
    this.#script = script;
  }

  async sample(prompt: readonly number[], options: SampleOptions = {}): Promise<SampleOutput> {
    const asked = { prompt, options };
    this.asked.push(asked);
    this.open += 1;
    this.mostOpen = Math.max(this.open, this.mostOpen);
    try {
      const said = await this.#script(asked);
      const tokens = typeof said === 'string' ? this.#tokenizer.encode(said, { parseSpecialTokens: true }) : [...said];
      const ends = this.#tokenizer.eosTokenIds.includes(tokens.at(-1) ?? -1);
      const sequence: SampledTokens = {
        tokens,
        logprobs: tokens.map((_, i) => -(i + 1) / 8),
        stopReason: ends ? 'stop' : 'length',
      };
      return { sequences: [sequence] };
    } finally {
      this.open -= 1;
    }
  }
}
