/** Which marks a model's turns have, told from its chat template. */
import { type ChatFamily, chatFamilyOf } from '../renderers/families.js';
import { HarmonyTurn } from './harmony-turn.js';
import { HermesTurn } from './hermes-turn.js';
import { LlamaTurn } from './llama-turn.js';
import { MistralTurn } from './mistral-turn.js';
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
}

/** @param template the source of a chat template; undefined where there is none */
export function turnFormatOf(template: string | undefined): TurnFormat {
  const family = chatFamilyOf(template);
  if (template === undefined)
    return { family, tools: 'none', thinking: false, thinkingSwitch: false, reasoningEffort: false };
  return {
    family,
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
  format: Pick<TurnFormat, 'tools' | 'thinking'>,
  { tools, isThinking = false }: TurnParserOptions,
): TurnParser {
  const parser = callParser(format.tools, tools);
  return format.thinking ? new ThinkingTurn(parser, { isOpen: isThinking }) : parser;
}

function callParser(format: ToolFormat, tools: readonly string[]): TurnParser {
  if (format === 'harmony') return new HarmonyTurn(tools);
  if (tools.length === 0) return new PlainTurn();
  switch (format) {
    case 'hermes':
      return new HermesTurn(tools);
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
      return { control: '', text: `<tool_call>\n{"name": "${name === undefined ? '' : `${name}", "arguments":`}` };
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
  /** A control token in front; '' for none. */
  readonly control: string;
  readonly text: string;
}
