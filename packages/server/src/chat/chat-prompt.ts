/** A chat as the model's own template writes it, and how its answer is to be read. */
import { complaint } from '@loopwright/protocol';
import {
  type CallBeginning,
  callBeginning,
  endsInThought,
  prepareMessages,
  type Tokenizer,
  type TurnParser,
  turnParser,
} from '@loopwright/text';
import type { ChatRequest } from '@loopwright/wires/openai';

export interface ChatPrompt {
  readonly tokens: Int32Array;
  /** Of one more answer. */
  readonly newParser: () => TurnParser;
  /** Texts at which decoding ends that stay in the answer. */
  readonly endings: readonly string[];
}

/** @throws `invalid_argument` for messages, tools or variables that the template does not take */
export function chatPrompt(tokenizer: Tokenizer, request: ChatRequest): ChatPrompt {
  const { turnFormat } = tokenizer;
  const { tools, toolChoice, parallelToolCalls, templateVariables, reasoningEffort } = request;
  checkModel(tokenizer, request);
  if (reasoningEffort !== undefined && !turnFormat.reasoningEffort) {
    throw complaint({
      field: 'body.reasoning_effort',
      expected: 'to be left out: the chat template of this model knows no such thing',
      got: 'a value that asks for it',
      remedy: 'leave it out; variables that the template knows go into chat_template_kwargs',
    });
  }
  const messages = prepareMessages(request.messages, turnFormat.family);
  const rendered = tokenizer.applyChatTemplate(messages, {
    ...templateVariables,
    ...(reasoningEffort === undefined ? {} : { reasoning_effort: reasoningEffort }),
    ...(tools.length === 0 ? {} : { tools }),
    addGenerationPrompt: true,
  });
  const isThinking = turnFormat.thinking && endsInThought(tokenizer, rendered);
  const mustCall = toolChoice.type === 'required' || toolChoice.type === 'named';
  const beginning = mustCall
    ? callBeginning(turnFormat.tools, toolChoice.type === 'named' ? toolChoice.name : undefined)
    : undefined;
  if (mustCall && (beginning === undefined || isThinking)) throw noForcedCall();
  const names = tools.map((tool) => tool.function.name);
  return {
    tokens: Int32Array.from([...rendered, ...(beginning === undefined ? [] : encodeBeginning(tokenizer, beginning))]),
    newParser: () => {
      const parser = turnParser(turnFormat, { tools: names, isThinking });
      if (beginning !== undefined && beginning.control !== '') parser.control(beginning.control);
      if (beginning !== undefined) parser.text(beginning.text);
      return parser;
    },
    endings: names.length > 0 && !parallelToolCalls && turnFormat.tools === 'hermes' ? ['</tool_call>'] : [],
  };
}

function checkModel(
  { turnFormat, hasChatTemplate }: Tokenizer,
  { tools, messages, parallelToolCalls }: ChatRequest,
): void {
  if (!hasChatTemplate) {
    throw complaint({
      field: 'body.model',
      expected: 'a model with a chat template',
      got: 'a model without one',
      remedy: 'name a model that was trained for chats, or send the prompt as text to /v1/completions',
    });
  }
  const { tools: format } = turnFormat;
  if (tools.length > 0 && (format === 'none' || format === 'unknown')) {
    throw complaint({
      field: 'body.tools',
      expected:
        format === 'none'
          ? 'no tools: the chat template of this model does not know them'
          : 'no tools: calls in the format of this model can’t be read here',
      got: `${tools.length}`,
      remedy: 'use a model whose template writes calls as Hermes, Qwen, Llama 3, Mistral or gpt-oss do',
    });
  }
  const calling = messages.findIndex(({ role, tool_calls }) => role === 'assistant' && tool_calls !== undefined);
  if (calling >= 0 && format === 'none') {
    throw complaint({
      field: `body.messages[${calling}].tool_calls`,
      expected: 'none: the chat template of this model would leave them out',
      got: 'some',
      remedy: 'use a model whose chat template knows tools, or say it as text',
    });
  }
  if (tools.length > 0 && !parallelToolCalls && (format === 'mistral' || format === 'llama')) {
    throw complaint({
      field: 'body.parallel_tool_calls',
      expected: 'true, or to be left out: this model writes its calls as one list, which can’t be held to one',
      got: 'false',
      remedy: 'leave it out, and use the first call',
    });
  }
}

function noForcedCall() {
  return complaint({
    field: 'body.tool_choice',
    expected: 'auto or none: turns of this model can’t be made to begin with a call',
    got: 'a choice that demands one',
    remedy: 'leave it out, and ask for the call in the messages',
  });
}

/** The control token is a token by itself; the text is text. */
function encodeBeginning(tokenizer: Tokenizer, { control, text }: CallBeginning): number[] {
  const token = control === '' ? [] : tokenizer.encode(control, { parseSpecialTokens: true });
  return [...token, ...tokenizer.encode(text)];
}
