/** Which marks a model's turns have, told from its chat template. */
import { type ChatFamily, chatFamilyOf } from '../renderers/families.js';
import { HarmonyTurn } from './harmony-turn.js';
import { HermesTurn } from './hermes-turn.js';
import { LlamaTurn } from './llama-turn.js';
import { MistralTurn } from './mistral-turn.js';
import { PlainMarks } from './plain-marks.js';
import { PlainTurn } from './plain-turn.js';
import { ThinkingTurn } from './thinking-turn.js';
import type { TurnParser } from './turn-event.js';

/** How calls are written. `none`: the template takes no tools; `unknown`: it does, in a way that can't be read back here. */
export type ToolFormat = 'hermes' | 'llama' | 'mistral' | 'harmony' | 'none' | 'unknown';

export interface TurnFormat {
  /** The format by its name; `other` where it is none that is known. */
  readonly family: ChatFamily;
  readonly tools: ToolFormat;
  /** Whether turns may begin with `<think>…</think>`. */
  readonly thinking: boolean;
  /** Whether the template knows the variable `enable_thinking`. */
  readonly thinkingSwitch: boolean;
  /** Whether the template knows the variable `reasoning_effort`. */
  readonly reasoningEffort: boolean;
  /** Marks of the template that are tokens of their own: only such a token is the mark, and its spelling in other tokens is text. */
  readonly markTokens: readonly string[];
  /** Those of them that aren't special: where the format has no use for one, it is text like any other. */
  readonly plainMarks: readonly string[];
}

/** A token that was added to the vocabulary. */
export interface AddedText {
  readonly content: string;
  readonly special: boolean;
}

/**
 * @param template the source of a chat template; undefined where there is none
 * @param added tokens that were added to the vocabulary
 */
export function turnFormatOf(template: string | undefined, added: readonly AddedText[] = []): TurnFormat {
  const family = chatFamilyOf(template);
  const none = { thinking: false, thinkingSwitch: false, reasoningEffort: false, markTokens: [], plainMarks: [] };
  if (template === undefined) return { family, tools: 'none', ...none };
  // White space is no mark, though some vocabularies have tokens added for runs of it.
  const marks = added.filter(({ content }) => /\S/.test(content) && template.includes(content));
  return {
    family,
    markTokens: marks.map(({ content }) => content),
    plainMarks: marks.flatMap(({ content, special }) => (special ? [] : [content])),
    tools: toolFormatOf(template),
    thinking: template.includes('</think>'),
    thinkingSwitch: template.includes('enable_thinking'),
    reasoningEffort: template.includes('reasoning_effort'),
  };
}

function toolFormatOf(template: string): ToolFormat {
  const has = (text: string): boolean => template.includes(text);
  if (has('<|channel|>') && has('<|call|>')) return 'harmony';
  if (!/\btools\b/.test(template)) return 'none';
  if (has('[TOOL_CALLS]')) return has('[ARGS]') ? 'unknown' : 'mistral';
  if (has('<tool_call>')) return has('<arg_key>') || has('<function=') ? 'unknown' : 'hermes';
  return has('ipython') && /"parameters\\?"/.test(template) ? 'llama' : 'unknown';
}

export interface TurnParserOptions {
  /** Names of the tools offered; without any, what looks like a call is text. */
  readonly tools: readonly string[];
  /** The prompt ends within the reasoning of the turn. */
  readonly isThinking?: boolean;
}

export function turnParser(
  { tools: format, thinking, markTokens = [], plainMarks = [] }: ReadFormat,
  { tools, isThinking = false }: TurnParserOptions,
): TurnParser {
  const calls = new PlainMarks(callParser(format, tools, markTokens), plainMarks);
  const isToken = markTokens.includes('<think>');
  return thinking ? new ThinkingTurn(calls, { isOpen: isThinking, isToken, plainMarks }) : calls;
}

/** As far as a turn's parser needs to know it. */
type ReadFormat = Pick<TurnFormat, 'tools' | 'thinking'> & Partial<Pick<TurnFormat, 'markTokens' | 'plainMarks'>>;

function callParser(format: ToolFormat, tools: readonly string[], markTokens: readonly string[]): TurnParser {
  if (format === 'harmony') return new HarmonyTurn(tools);
  if (tools.length === 0) return new PlainTurn();
  switch (format) {
    case 'hermes':
      return new HermesTurn(tools, { isToken: markTokens.includes('<tool_call>') });
    case 'llama':
      return new LlamaTurn(tools);
    case 'mistral':
      return new MistralTurn(tools);
    case 'none':
    case 'unknown':
      return new PlainTurn();
    default:
      return format satisfies never;
  }
}

/**
 * How a turn begins that must be a call: text to be put behind the prompt, control tokens in it to be read as such, and to be given to the
 * parser first. No white space at its end: tokens of what follows begin with it.
 *
 * @param name the tool; undefined for any
 * @returns undefined where the format has no such beginning
 */
export function callBeginning(format: ToolFormat, name: string | undefined): CallBeginning | undefined {
  switch (format) {
    case 'hermes':
      return { control: '<tool_call>', text: `\n{"name": "${name === undefined ? '' : `${name}", "arguments":`}` };
    case 'llama':
      return { control: '', text: `{"name": "${name === undefined ? '' : `${name}", "parameters":`}` };
    case 'mistral':
      return { control: '[TOOL_CALLS]', text: `[{"name": "${name === undefined ? '' : `${name}", "arguments":`}` };
    case 'harmony':
    case 'none':
    case 'unknown':
      return undefined;
    default:
      return format satisfies never;
  }
}

export interface CallBeginning {
  /** A control token or mark in front; '' for none. */
  readonly control: string;
  readonly text: string;
}
