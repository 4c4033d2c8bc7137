/** A server whose model says what a test tells it to, through a Hermes template with tools. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadModelTokenizer, openModelFiles, type SampleRequest } from '@loopwright/engine';
import { startServer } from '@loopwright/server';
import { temporaryDirectory } from '@loopwright/testkit';
import { type Script, ScriptedEngine } from '../../support/scripted-engine.js';
import { changeConfig, makeTinyModel } from '../../support/tiny-model.js';

/** As Qwen's: tools in the system turn, calls and their answers in tags of their own. */
const template = [
  "{%- if tools %}{{ '<s>' }}{% for tool in tools %}{{ tool | tojson }}{% endfor %}{{ '</s>' }}{% endif %}",
  "{%- for m in messages %}{{ '<' + m.role + '>' + m.content }}",
  '{%- for call in m.tool_calls or [] %}',
  '{{- \'<tool_call>{"name": "\' + call.function.name + \'", "arguments": \' }}',
  "{{- call.function.arguments if call.function.arguments is string else call.function.arguments | tojson }}{{ '}</tool_call>' }}",
  "{%- endfor %}{{ '</' + m.role + '>' }}{% endfor %}",
  "{%- if add_generation_prompt %}{{ '<assistant>' }}{% endif %}",
  '{#- <think> </think> #}',
].join('\n');

export interface ScriptedServer extends AsyncDisposable {
  readonly url: string;
  readonly engine: ScriptedEngine;
  readonly model: string;
  /** Lets the model say this next, to its end; `cut` stops it in front of the end. */
  say(text: string, options?: Partial<Script> & { readonly cut?: boolean }): void;
  /** What the model was last told. */
  lastPrompt(): string;
  close(): Promise<void>;
}

export interface ScriptedServerOptions {
  readonly apiKey?: string;
  /** Where it was told nothing, the model repeats the last user's or tool's message. */
  readonly parrot?: boolean;
  /** 512 by default. */
  readonly contextLength?: number;
}

export async function startScriptedServer({
  parrot = false,
  contextLength = 512,
  ...options
}: ScriptedServerOptions = {}): Promise<ScriptedServer> {
  const folder = await temporaryDirectory();
  const directory = await makeTinyModel(join(folder.path, 'model'));
  await writeFile(join(directory, 'chat_template.jinja'), template);
  await changeConfig(directory, { max_position_embeddings: contextLength });
  const model = 'scripted';
  const tokenizer = await loadModelTokenizer(await openModelFiles(directory));
  const ending = tokenizer.eosTokenIds.slice(0, 1);
  const repeated = ({ prompt }: SampleRequest) => {
    const [, , text = ''] = /.*<(user|tool)>(.*?)<\/\1>/.exec(tokenizer.decode(prompt)) ?? [];
    return { ids: [...tokenizer.encode(text), ...ending] };
  };
  const engine = new ScriptedEngine({
    model: { id: model, contextLength, vocabSize: 300 },
    otherwise: parrot ? repeated : undefined,
  });
  const server = await startServer({
    dataDir: join(folder.path, 'data'),
    models: [{ id: model, directory }],
    engineFactory: async () => engine,
    ...options,
  });
  const close = async () => {
    await server.close();
    await folder[Symbol.asyncDispose]();
  };
  return {
    url: server.url,
    engine,
    model,
    say: (text, { cut = false, ...script } = {}) => {
      const ids = tokenizer.encode(text);
      // A cut answer is one whose limit is met before it ends: the caller gives that limit.
      engine.say({ ids: cut ? [...ids, ...ids] : [...ids, ...ending], ...script });
    },
    lastPrompt: () => tokenizer.decode(engine.requests.at(-1)!.prompt, { skipSpecialTokens: false }),
    close,
    [Symbol.asyncDispose]: close,
  };
}
