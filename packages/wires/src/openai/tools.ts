/** Tools of a chat request, and whether the model must use them. */
import { complaint } from '@loopwright/protocol';
import { arrayAt, booleanAt, describeValue, type JsonObject, objectAt, optional, stringAt } from '../checks.js';
import { refusedField } from './fields.js';

/** A tool as chat templates take it. */
export interface ToolDefinition {
  readonly type: 'function';
  readonly function: {
    readonly name: string;
    readonly description?: string;
    /** JSON Schema. */
    readonly parameters?: JsonObject;
  };
}

/** `required`: some tool; `named`: that one. */
export type ToolChoice =
  | { readonly type: 'none' }
  | { readonly type: 'auto' }
  | { readonly type: 'required' }
  | { readonly type: 'named'; readonly name: string };

export interface ToolRequest {
  /** Those the model may use; empty where the choice is `none`, as it isn't told of them then. */
  readonly tools: readonly ToolDefinition[];
  readonly toolChoice: ToolChoice;
  /** Whether one turn may have several calls. */
  readonly parallelToolCalls: boolean;
}

const limits = { tools: 128 } as const;
const toolName = /^[A-Za-z0-9_.-]{1,64}$/;

/** @throws `invalid_argument` naming the field */
export function toolRequestOf(body: JsonObject): ToolRequest {
  const tools = optional(body, 'tools', 'body', toolsAt) ?? [];
  const toolChoice = choiceOf(body, tools);
  return {
    tools: toolChoice.type === 'none' ? [] : tools,
    toolChoice,
    parallelToolCalls: optional(body, 'parallel_tool_calls', 'body', booleanAt) ?? true,
  };
}

function toolsAt(value: unknown, field: string): ToolDefinition[] {
  const tools = arrayAt(value, field, { max: limits.tools }).map((tool, i) => toolAt(tool, i));
  const names = tools.map((tool) => tool.function.name);
  const twice = names.findIndex((name, i) => names.indexOf(name) !== i);
  if (twice >= 0) {
    throw complaint({ field: `body.tools[${twice}].function.name`, expected: 'each name once', got: 'one twice' });
  }
  return tools;
}

function toolAt(value: unknown, index: number): ToolDefinition {
  const field = `tools[${index}]`;
  const tool = objectAt(value, `body.${field}`);
  if (tool.type !== 'function')
    throw complaint({ field: `body.${field}.type`, expected: 'function', got: describeValue(tool.type) });
  const at = `body.${field}.function`;
  const given = objectAt(tool.function, at);
  if (given.strict === true)
    throw refusedField(
      `${field}.function.strict`,
      'arguments are not constrained to the schema here: leave it out, and check them before use',
    );
  const description = optional(given, 'description', at, (text, where) =>
    stringAt(text, where, { max: Number.MAX_SAFE_INTEGER }),
  );
  const parameters = optional(given, 'parameters', at, objectAt);
  return {
    type: 'function',
    function: {
      name: stringAt(given.name, `${at}.name`, { max: 64, pattern: toolName }),
      ...(description === undefined ? {} : { description }),
      ...(parameters === undefined ? {} : { parameters }),
    },
  };
}

function choiceOf(body: JsonObject, tools: readonly ToolDefinition[]): ToolChoice {
  const { tool_choice: given } = body;
  const field = 'body.tool_choice';
  if (given === undefined || given === null) return { type: tools.length > 0 ? 'auto' : 'none' };
  if (given === 'none') return { type: 'none' };
  if (tools.length === 0)
    throw complaint({
      field,
      expected: 'to be left out, or none, where there are no tools',
      got: describeValue(given),
    });
  if (given === 'auto' || given === 'required') return { type: given };
  if (typeof given === 'string')
    throw complaint({ field, expected: 'none, auto, required, or a function by its name', got: describeValue(given) });
  const { type, function: chosen } = objectAt(given, field);
  if (type !== 'function') throw complaint({ field: `${field}.type`, expected: 'function', got: describeValue(type) });
  const { name } = objectAt(chosen, `${field}.function`);
  const tool = tools.find((one) => one.function.name === name);
  if (tool === undefined) {
    throw complaint({
      field: `${field}.function.name`,
      expected: 'the name of one of the tools',
      got: describeValue(name),
    });
  }
  return { type: 'named', name: tool.function.name };
}
