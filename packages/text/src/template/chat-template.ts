/** A chat template: messages in, the text of the prompt out, as transformers renders it. */
import { complaint, LoopwrightError } from '@loopwright/protocol';
import { parseTemplate, runTemplate, TemplateLimitError, TemplateRaisedError } from './interpreter.js';
import type { Node } from './jinja-library.js';
import type { JsonValue } from './messages.js';
import { strftime } from './strftime.js';

/** Real templates are below 20,000 characters. */
const maximumTemplateCharacters = 1_000_000;

/** What one rendering is given; all plain data, already normalised. */
export interface RenderInput {
  readonly messages: readonly Readonly<Record<string, JsonValue>>[];
  readonly tools: JsonValue;
  readonly addGenerationPrompt: boolean;
  /** End within the last message, so that the model goes on with it. */
  readonly continueFinalMessage: boolean;
  /** Other variables, such as `enable_thinking`; they win over special tokens of the same name. */
  readonly variables: Readonly<Record<string, JsonValue>>;
}

export interface ChatTemplateOptions {
  readonly source: string;
  /** `bos_token`, `eos_token`, …: variables that templates print. */
  readonly specialTokens: Readonly<Record<string, string>>;
  readonly now: () => Date;
}

/** Stands where a message is to be continued: the reference uses a trailing space to see whether the template trims. */
const continueTag = 'CONTINUE_FINAL_MESSAGE_TAG ';

/** A parsed template; parsing happens once, rendering as often as you like. */
export class ChatTemplate {
  readonly #program: Node;
  readonly #specialTokens: Readonly<Record<string, string>>;
  readonly #now: () => Date;

  /** @throws `model_invalid` when the template is too long or doesn't parse */
  constructor({ source, specialTokens, now }: ChatTemplateOptions) {
    if (source.length > maximumTemplateCharacters) {
      throw complaint({
        code: 'model_invalid',
        field: 'chat_template',
        expected: `at most ${maximumTemplateCharacters} characters`,
        got: String(source.length),
        remedy: 'restore the file from the place the model came from',
      });
    }
    try {
      this.#program = parseTemplate(source);
    } catch (cause) {
      throw complaint({
        code: 'model_invalid',
        field: 'chat_template',
        expected: 'a Jinja template',
        got: cause instanceof Error ? cause.message : 'text that does not parse',
        remedy: 'restore the file from the place the model came from, or pass another template as chatTemplate',
        cause,
      });
    }
    this.#specialTokens = specialTokens;
    this.#now = now;
  }

  /**
   * @throws `invalid_argument` when the template refuses the messages, or can't render them; `model_invalid` when it runs
   * beyond the limits
   */
  render(input: RenderInput): string {
    const { messages, continueFinalMessage } = input;
    if (!continueFinalMessage) return this.#run(input, messages);
    if (input.addGenerationPrompt) {
      throw complaint({
        field: 'continueFinalMessage',
        expected: 'false where addGenerationPrompt is true',
        got: 'both true',
        remedy: 'a turn is either begun or continued: set one of the two',
      });
    }
    const { tagged, content } = tagFinalMessage(messages);
    const text = this.#run(input, tagged);
    const tag = continueTag.trim();
    const at = text.lastIndexOf(tag);
    if (at < 0 || !text.includes(content.trim())) {
      throw complaint({
        field: 'continueFinalMessage',
        expected: 'a template that prints the last message as it is',
        got: 'a rendering without it',
        remedy: 'render with addGenerationPrompt and append the beginning of the answer yourself',
      });
    }
    const before = text.slice(0, at);
    return text.startsWith(continueTag, at) ? before : before.trimEnd();
  }

  #run(input: RenderInput, messages: RenderInput['messages']): string {
    const now = this.#now();
    try {
      return runTemplate(this.#program, {
        variables: {
          documents: null,
          ...this.#specialTokens,
          ...input.variables,
          messages,
          tools: input.tools,
          add_generation_prompt: input.addGenerationPrompt,
        },
        strftimeNow: (format) => strftime(now, format),
      });
    } catch (error) {
      throw renderingError(error, messages);
    }
  }
}

function tagFinalMessage(messages: RenderInput['messages']): { tagged: RenderInput['messages']; content: string } {
  const last = messages.at(-1);
  const content = last?.content;
  if (typeof content === 'string') {
    return { tagged: [...messages.slice(0, -1), { ...last, content: content + continueTag }], content };
  }
  if (Array.isArray(content)) {
    const parts = content as readonly JsonValue[]; // true: narrowed by Array.isArray, which forgets the element type
    const at = parts.findLastIndex((part) => isObject(part) && typeof part.text === 'string');
    const part = parts[at];
    if (part !== undefined && isObject(part)) {
      const text = String(part.text);
      const tagged = parts.with(at, { ...part, text: text + continueTag });
      return { tagged: [...messages.slice(0, -1), { ...last, content: tagged }], content: text };
    }
  }
  throw complaint({
    field: 'messages',
    expected: 'a last message with text, which is to be continued',
    got: messages.length === 0 ? 'no messages' : 'a last message without text',
  });
}

function isObject(value: JsonValue | undefined): value is { readonly [key: string]: JsonValue } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function renderingError(error: unknown, messages: RenderInput['messages']): LoopwrightError {
  if (LoopwrightError.isInstance(error)) return error;
  if (error instanceof TemplateLimitError || error instanceof RangeError) {
    return complaint({
      code: 'model_invalid',
      field: 'chat_template',
      expected: 'a template that renders within the limits',
      got: error instanceof TemplateLimitError ? error.message : 'recursion without end',
      remedy: 'pass another template as chatTemplate',
      cause: error,
    });
  }
  const said = error instanceof Error ? error.message : String(error);
  // A template may put what a message says into its complaint; that must not travel on.
  const shown = mentions(said, messages) ? 'a complaint that quotes a message' : said.slice(0, 300);
  return complaint({
    field: 'messages',
    expected: 'messages that the chat template of the model accepts',
    got:
      error instanceof TemplateRaisedError ? `some that it refuses: ${shown}` : `some that it can't render: ${shown}`,
    remedy: 'check the roles and their order, and that each message has content',
  });
}

/** Whether `said` repeats some text of the messages (roles aside). */
function mentions(said: string, value: unknown, key?: string): boolean {
  if (typeof value === 'string') return key !== 'role' && value.length >= 3 && said.includes(value);
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([name, item]) => mentions(said, item, Array.isArray(value) ? key : name));
}
