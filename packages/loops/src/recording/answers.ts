/** Token ids out of answers in OpenAI's shape, whole ones and chunks alike. */

export interface RecordedAnswer {
  readonly prompt: readonly number[];
  readonly tokens: number[];
  readonly logprobs: number[];
  readonly finishReason: string | undefined;
}

interface Growing {
  prompt: readonly number[];
  readonly tokens: number[];
  readonly logprobs: number[];
  finishReason: string | undefined;
}

/** One for each choice, in the order of their indices. A prompt that is told once, with the first choice, is that of all. */
export function answersOf(bodies: readonly unknown[]): RecordedAnswer[] {
  const byIndex = new Map<number, Growing>();
  let shared: readonly number[] = [];
  for (const body of bodies) {
    if (!isObject(body)) continue;
    const prompt = numbers(body.prompt_token_ids);
    if (prompt.length > 0) shared = prompt;
    for (const choice of Array.isArray(body.choices) ? (body.choices as unknown[]) : []) {
      if (!isObject(choice) || typeof choice.index !== 'number') continue;
      const own = numbers(choice.prompt_token_ids);
      const known = byIndex.get(choice.index) ?? { prompt: [], tokens: [], logprobs: [], finishReason: undefined };
      byIndex.set(choice.index, known);
      if (own.length > 0) known.prompt = own;
      known.tokens.push(...numbers(choice.token_ids));
      known.logprobs.push(...numbers(choice.token_logprobs));
      if (typeof choice.finish_reason === 'string') known.finishReason = choice.finish_reason;
    }
  }
  const answers = [...byIndex.entries()].sort(([a], [b]) => a - b);
  return answers.map(([, answer]) => ({ ...answer, prompt: answer.prompt.length > 0 ? answer.prompt : shared }));
}

function numbers(value: unknown): readonly number[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'number') ? (value as number[]) : []; // true: each was looked at
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
