import { type EpisodeEnvironment, runTools, type Tool } from '@loopwright/loops';

const add: Tool = {
  definition: { type: 'function', function: { name: 'add', parameters: { type: 'object' } } },
  run: ({ a, b }) => {
    if (typeof a !== 'number' || typeof b !== 'number') throw new TypeError('a and b are numbers');
    return String(a + b);
  },
};

export const sumsWithTool: EpisodeEnvironment = {
  name: 'sums with a tool',
  tools: [add.definition],
  draw: () => ({ id: '1 + 2' }),
  begin: ({ id }, { signal }) => ({
    messages: [{ role: 'user', content: `${id}?` }],
    respond: async (turn) => {
      const isCall = turn.toolCalls.length + turn.brokenCalls.length > 0;
      if (isCall) return { messages: (await runTools(turn, [add], signal)).messages };
      return { grade: { status: 'ok', reward: turn.text.trim() === '3' ? 1 : 0 } };
    },
  }),
};
