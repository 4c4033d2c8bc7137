/** Tools of an episode: their definitions for the model, and running what it calls. */
import type { ChatMessage } from '@loopwright/text';
import type { ModelTurn, ToolCall } from './environment.js';

/** A tool as chat templates and OpenAI-shaped clients know it. */
export interface ToolDefinition {
  readonly type: 'function';
  readonly function: {
    readonly name: string;
    readonly description?: string;
    /** JSON Schema of the arguments, an object. */
    readonly parameters?: Readonly<Record<string, unknown>>;
  };
}

/** A tool that the environment runs. */
export interface Tool {
  readonly definition: ToolDefinition;
  /**
   * @param args as the model wrote them: check them, and throw a sentence that helps it
   * @returns what the model is told
   */
  run(args: Readonly<Record<string, unknown>>, signal: AbortSignal): string | Promise<string>;
}

/** What a call came to. `failed`: the tool threw, or the call was broken. */
export interface ToolOutcome {
  readonly call: ToolCall | undefined;
  readonly failed: boolean;
  readonly content: string;
}

export interface ToolReply {
  /** One for each call, in order: to be put behind the model's answer. */
  readonly messages: readonly ChatMessage[];
  readonly outcomes: readonly ToolOutcome[];
}

/**
 * Runs the calls of a turn one after another. A broken call is never run: the model is told what was wrong with it, as it is told what a
 * tool threw, so that the next request is valid in any case.
 */
export async function runTools(turn: ModelTurn, tools: readonly Tool[], signal: AbortSignal): Promise<ToolReply> {
  const outcomes: ToolOutcome[] = [];
  for (const call of turn.toolCalls) {
    const tool = tools.find(({ definition }) => definition.function.name === call.name);
    if (tool === undefined) {
      outcomes.push({ call, failed: true, content: `error: there is no tool ${call.name}` });
      continue;
    }
    try {
      outcomes.push({ call, failed: false, content: await tool.run(call.arguments, signal) });
    } catch (error) {
      if (signal.aborted) throw error;
      outcomes.push({
        call,
        failed: true,
        content: `error: ${error instanceof Error ? error.message : String(error)}`,
      });
    }
  }
  for (const { reason } of turn.brokenCalls) {
    outcomes.push({ call: undefined, failed: true, content: `error: the tool call could not be read (${reason})` });
  }
  return { outcomes, messages: outcomes.map(messageOf) };
}

/** A broken call has no id, and templates write a tool's message only behind a call: its error is the user's to say. */
function messageOf({ call, content }: ToolOutcome): ChatMessage {
  if (call === undefined) return { role: 'user', content };
  return { role: 'tool', content, name: call.name, tool_call_id: call.id };
}
