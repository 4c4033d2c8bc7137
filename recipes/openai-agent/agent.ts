/** An agent as one writes it for any server of OpenAI's API: it knows nothing of training. */
import type OpenAI from 'openai';

type Message = OpenAI.Chat.ChatCompletionMessageParam;

const tools: OpenAI.Chat.ChatCompletionFunctionTool[] = [
  {
    type: 'function',
    function: {
      name: 'add',
      description: 'Adds two whole numbers.',
      parameters: {
        type: 'object',
        properties: { a: { type: 'integer' }, b: { type: 'integer' } },
        required: ['a', 'b'],
      },
    },
  },
];

export interface AgentOptions {
  readonly model: string;
  readonly question: string;
  /** Answers of the model at most; 3. */
  readonly maxTurns?: number;
  /** Tokens of each answer at most; 96. */
  readonly maxTokens?: number;
  readonly seed?: number;
}

/** Asks, runs the tools that the model calls, and returns its last words; '' when it has not come to any. */
export async function agent(
  client: OpenAI,
  { model, question, maxTurns = 3, maxTokens = 96, seed }: AgentOptions,
): Promise<string> {
  const messages: Message[] = [
    { role: 'system', content: 'Use the tool for sums, then answer with the number alone.' },
    { role: 'user', content: question },
  ];
  for (let turn = 0; turn < maxTurns; turn++) {
    const { choices } = await client.chat.completions.create({
      ...{ model, messages, tools },
      max_completion_tokens: maxTokens,
      ...(seed === undefined ? {} : { seed: seed + turn }),
    });
    const { message } = choices[0]!;
    messages.push(message);
    const broken = brokenCalls(message);
    if (broken.length > 0) {
      // What was no call is never run: the model is told so, and may try again.
      messages.push({ role: 'user', content: `That was no call of a tool: ${broken.join(', ')}.` });
    } else if (message.tool_calls === undefined) return message.content ?? '';
    for (const call of message.tool_calls ?? []) {
      if (call.type !== 'function') continue;
      messages.push({ role: 'tool', tool_call_id: call.id, content: run(call.function.arguments) });
    }
  }
  return '';
}

/** Arguments come from a model: they are JSON, and may be anything else but what the tool wants. */
function run(args: string): string {
  const { a, b } = JSON.parse(args) as { a?: unknown; b?: unknown }; // true: the server gives objects only
  if (!Number.isSafeInteger(a) || !Number.isSafeInteger(b)) return 'error: a and b must be whole numbers';
  return String(Number(a) + Number(b));
}

/** Why parts of a turn were no calls: a field that Loopwright's server adds. Elsewhere there is none. */
function brokenCalls(message: object): string[] {
  const { tool_call_errors: errors = [] } = message as { tool_call_errors?: { reason: string }[] }; // as its guide has it
  return errors.map(({ reason }) => reason);
}
