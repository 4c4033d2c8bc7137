import { type ChatModelName, chatControlTokens, chatMarks, chatModelFiles, chatModels } from '@loopwright/testkit';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ChatMessage, wellFormed } from '../template/messages.js';
import { brokenCallReply, type ParseOptions } from './parse-turn.js';
import { type Renderer, rendererFor } from './renderer.js';

const renderers = new Map(chatModels.map((name) => [name, rendererFor(chatModelFiles(name))] as const));
const rendererOf = (name: ChatModelName): Renderer => renderers.get(name)!;
const tools = [
  { type: 'function', function: { name: 'add', parameters: { type: 'object', properties: {} } } },
  { type: 'function', function: { name: 'look_up', parameters: { type: 'object', properties: {} } } },
];

/** A turn as a model draws it; control tokens in `text` are read as such. */
const parse = (name: ChatModelName, text: string, options: ParseOptions = { tools }) =>
  rendererOf(name).parse(rendererOf(name).tokenizer.encode(text, { parseSpecialTokens: true }), options);

const call = (args: string) => ({ function: { name: 'add', arguments: args } });

describe('a turn of the model', () => {
  it.each([
    ['chatml', 'Hello.<|im_end|>', { content: 'Hello.' }],
    [
      'qwen2.5',
      'So:\n<tool_call>\n{"name": "add", "arguments": {"a": 1.0}}\n</tool_call><|im_end|>',
      { content: 'So:', tool_calls: [call('{"a": 1.0}')] },
    ],
    ['qwen3', '<think>\nHm.\n</think>\n\n4<|im_end|>', { content: '4', reasoning_content: 'Hm.' }],
    [
      'llama3',
      '<|python_tag|>{"name": "add", "parameters": {"a": 1}}<|eom_id|>',
      { content: '', tool_calls: [call('{"a": 1}')] },
    ],
    [
      'gpt-oss',
      '<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.add <|constrain|>json<|message|>{"a":1}<|call|>',
      { content: '', reasoning_content: 'Hm.', tool_calls: [call('{"a":1}')] },
    ],
    [
      'mistral',
      '[TOOL_CALLS][{"name": "add", "arguments": {}, "id": "Q7x0000aB"}]</s>',
      { content: '', tool_calls: [{ id: 'Q7x0000aB', ...call('{}') }] },
    ],
    ['gemma3', '4<end_of_turn>', { content: '4' }],
  ] as const)('of %s is a message', (name, text, message) => {
    const parsed = parse(name, text);
    expect(parsed).toMatchObject({ message, status: 'ok', broken: [], raw: text });
    expect(rendererOf(name).stopTokenIds).toContain(parsed.endToken);
    expect(parsed.driftsAt).toBeUndefined();
  });

  it.each(chatModels)('of %s without an end is truncated, whatever is in it', (name) => {
    const parsed = parse(name, name === 'gpt-oss' ? '<|channel|>final<|message|>The answer i' : 'The answer i');
    expect(parsed).toMatchObject({ status: 'truncated', message: { content: 'The answer i' }, broken: [] });
    expect(parsed.endToken).toBeUndefined();
  });

  it('goes on with the reasoning that its prompt began', () => {
    const template =
      '{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}{# </think> #}';
    const renderer = rendererFor(chatModelFiles('qwen3', template));
    const { thinkingOpen } = renderer.render([{ role: 'user', content: 'x' }], { addGenerationPrompt: true });
    expect(thinkingOpen).toBe(true);
    const tokens = renderer.tokenizer.encode('Hm.\n</think>\n\n4<|im_end|>', { parseSpecialTokens: true });
    expect(renderer.parse(tokens, { thinkingOpen }).message).toEqual({
      role: 'assistant',
      content: '4',
      reasoning_content: 'Hm.',
    });
  });

  it('ended by an end of sequence without its mark is told apart, and read (A13)', () => {
    expect(parse('llama3', '42<|end_of_text|>')).toMatchObject({ status: 'unmarked', message: { content: '42' } });
    expect(parse('gemma3', '42<eos>')).toMatchObject({ status: 'unmarked', message: { content: '42' } });
  });

  it('has nothing behind its end', () => {
    expect(parse('chatml', '4<|im_end|>\n')).toMatchObject({ status: 'ok' });
    expect(parse('chatml', '4<|im_end|>5')).toMatchObject({
      status: 'malformed',
      message: { content: '4' },
      broken: [{ reason: 'behind-end', raw: '5' }],
    });
  });

  it('may have been drawn as other tokens than its text gives: those are told (D1)', () => {
    const { tokenizer, parse: _, ...rest } = rendererOf('chatml');
    const drawn = [...'the answer'].flatMap((character) => tokenizer.encode(character));
    expect(drawn.length).toBeGreaterThan(tokenizer.encode('the answer').length);
    const parsed = rendererOf('chatml').parse([...drawn, ...rest.stopTokenIds]);
    expect(parsed).toMatchObject({ status: 'ok', driftsAt: 0, message: { content: 'the answer' } });
  });

  it('of ids that no token has, or cut within a character, is read without a crash', () => {
    const renderer = rendererOf('chatml');
    const half = renderer.tokenizer.encode('é🌦').slice(0, -1);
    expect(renderer.parse([...half, 999_999]).status).toBe('truncated');
    expect(renderer.parse([])).toMatchObject({ status: 'truncated', message: { content: '' }, raw: '' });
  });
});

describe('marks that are tokens of their own', () => {
  const text = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>';

  it('are read as such; spelled in other tokens, as in what was quoted, they are text', () => {
    const renderer = rendererOf('qwen3');
    const { tokenizer } = renderer;
    const end = renderer.stopTokenIds;
    const spelled = (said: string): number[] => [...said].flatMap((character) => tokenizer.encode(character));
    const quoted = renderer.parse([...spelled(`It says ${text}`), ...end], { tools });
    expect(quoted).toMatchObject({ status: 'ok', broken: [], message: { content: `It says ${text}` }, driftsAt: 0 });
    expect(quoted.message.tool_calls).toBeUndefined();
    const thought = renderer.parse([...spelled('<think>a</think>b'), ...end], { tools });
    expect(thought.message).toEqual({ role: 'assistant', content: '<think>a</think>b' });
    const real = renderer.parse([...tokenizer.encode(`It says\n${text}`), ...end], { tools });
    expect(real.message).toMatchObject({ content: 'It says', tool_calls: [call('{"a": 1}')] });
  });

  it('end a call only behind its object, and mean nothing within reasoning or without tools', () => {
    const inside = '<tool_call>{"name":"add","arguments":{"a":"</tool_call>"}}</tool_call>';
    expect(parse('qwen3', `${inside}<|im_end|>`).message.tool_calls).toMatchObject([call('{"a":"</tool_call>"}')]);
    expect(parse('qwen3', `<think>${text}</think>x<think></tool_response><|im_end|>`).message).toEqual({
      role: 'assistant',
      content: 'x<think></tool_response>',
      reasoning_content: text,
    });
    expect(parse('qwen3', `</think>${text}<|im_end|>`, {}).message.content).toBe(`</think>${text}`);
    expect(parse('qwen2.5', `a</tool_call>b <|im_end|>`).message.content).toBe('a</tool_call>b ');
    expect(parse('qwen2.5', '<tool_call></tool_call><|im_end|>').broken).toMatchObject([{ reason: 'not-json' }]);
    expect(parse('qwen2.5', '<tool_call><tool_call>{}').broken).toMatchObject([{ reason: 'cut' }]);
  });
});

describe('calls that are none (F4)', () => {
  const cases = {
    hermes: {
      cut: '<tool_call>\n{"name": "add", "arguments": {"a": 1',
      'not-json': '<tool_call>{"name":"add","arguments":{}}{"name":"add","arguments":{}}</tool_call>',
      'doubled-key': '<tool_call>{"name":"add","name":"look_up","arguments":{}}</tool_call>',
      'wrong-shape': '<tool_call>{"name":"add","arguments":"{}"}</tool_call>',
      'unknown-tool': '<tool_call>{"name":"erase","arguments":{}}</tool_call>',
    },
    llama3: {
      cut: '{"name": "add", "parameters": {"a"',
      'not-json': '{"name":"add","parameters":{}}{"name":"add","parameters":{}}',
    },
    mistral: {
      cut: '[TOOL_CALLS][{"name": "add", "arguments": {}}',
      'not-json': '[TOOL_CALLS][{"name":"add","arguments":{}}][]',
    },
    'gpt-oss': {
      cut: '<|channel|>commentary to=functions.add<|message|>{"a"',
      'not-json': '<|channel|>commentary to=functions.add<|message|>{}{}',
      'bad-header': '<|channel|>nowhere<|message|>42',
    },
  } as const;
  const rows = (['qwen2.5', 'qwen3', 'llama3', 'mistral', 'gpt-oss'] as const).flatMap((name) =>
    Object.entries(name.startsWith('qwen') ? cases.hermes : cases[name as 'llama3']).map(([reason, text]) => ({
      name,
      reason,
      text,
    })),
  );

  it.each(rows)('$name: $reason', ({ name, reason, text }) => {
    const renderer = rendererOf(name);
    const end = renderer.tokenizer.controlToken(renderer.stopTokenIds[0]!)!;
    const parsed = parse(name, reason === 'cut' ? text : text + end);
    expect(parsed.broken).toEqual([{ reason, raw: text }]);
    expect(parsed.status).toBe(reason === 'cut' ? 'truncated' : 'malformed');
    expect(parsed.message.tool_calls).toBeUndefined();
    expect(parsed.message.content).toBe(text);
    // A turn that says so, and the next request is as good as any.
    const chat: ChatMessage[] = [{ role: 'user', content: 'x' }, parsed.message, brokenCallReply(parsed)!];
    const { tokens } = renderer.render(chat, { tools, addGenerationPrompt: true });
    expect(renderer.tokenizer.decode(tokens)).toContain('Tool error: your call was not executed');
  });

  it('keep the whole ones before them', () => {
    const whole = '<tool_call>\n{"name": "add", "arguments": {}}\n</tool_call>';
    const parsed = parse('qwen3', `${whole}\n<tool_call>\n{"name": "ad`);
    expect(parsed).toMatchObject({
      status: 'truncated',
      message: { tool_calls: [call('{}')] },
      broken: [{ reason: 'cut' }],
    });
    expect(parsed.message.tool_calls).toHaveLength(1);
  });

  it('are text where no tools were offered, and there is nothing to reply to a good turn', () => {
    const text = '<tool_call>{"name":"add","arguments":{}}</tool_call>';
    const parsed = parse('qwen2.5', `${text}<|im_end|>`, {});
    expect(parsed).toMatchObject({ status: 'ok', message: { content: text } });
    expect(brokenCallReply(parsed)).toBeUndefined();
  });
});

describe('rendering and parsing', () => {
  /** Anything at all, and what looks like marks; white space at the ends is the template's. */
  const text = (name: ChatModelName) =>
    fc
      .array(
        fc.oneof(
          fc.string({ unit: 'binary', maxLength: 6 }),
          fc.string({ unit: 'grapheme', maxLength: 6 }),
          fc.constantFrom(
            ...chatControlTokens(name),
            ...chatMarks(name),
            '{',
            '}',
            '"',
            '\\',
            '\n',
            ' ',
            '<|',
            '|>',
            'functions.add',
            '\ue000',
          ),
        ),
        { maxLength: 6 },
      )
      .map((parts) => wellFormed(parts.join('')))
      // Bytes that this vocabulary has no token for are lost by its nature.
      .filter((value) => decodes(name, value))
      .map((value) => value.trim());
  const decodes = (name: ChatModelName, value: string): boolean => {
    const { tokenizer } = rendererOf(name);
    return tokenizer.decode(tokenizer.encode(value)) === value;
  };
  const isPlain = (name: ChatModelName, value: string): boolean =>
    // Qwen3's template takes what is said apart there.
    (name !== 'qwen3' || !value.includes('</think>')) &&
    (name !== 'llama3' || !/^\s*\{\s*"(name|parameters)"/.test(value)) &&
    (name !== 'gpt-oss' || !/<\|channel\|>(analysis|final)<\|message\|>/.test(value));
  const roundTrip = (name: ChatModelName, user: string, message: ChatMessage) => {
    const renderer = rendererOf(name);
    const { tokens, turns } = renderer.render([{ role: 'user', content: `q${user}` }, message], { tools });
    const turn = turns.at(-1)!;
    return renderer.parse(tokens.slice(turn.start, turn.end), { tools });
  };

  it.each(chatModels)('of %s give a message back, whatever is said', (name) => {
    const thinks = name === 'qwen3' || name === 'gpt-oss';
    fc.assert(
      fc.property(text(name), text(name), text(name), (user, content, reasoning) => {
        fc.pre(isPlain(name, content) && isPlain(name, reasoning));
        const message = {
          role: 'assistant',
          content,
          ...(thinks && reasoning !== '' ? { reasoning_content: reasoning } : {}),
        };
        const parsed = roundTrip(name, user, message);
        expect(parsed.message).toEqual(message);
        expect(parsed.status).toBe('ok');
      }),
      { numRuns: 150, seed: 11 },
    );
  });

  it.each(['qwen2.5', 'qwen3', 'llama3', 'gpt-oss', 'mistral'] as const)(
    'of %s give calls back, with any arguments',
    (name) => {
      const key = text(name).filter((value) => value !== '__proto__');
      const value = fc.oneof(
        text(name),
        fc.integer(),
        fc.boolean(),
        fc.constant(null),
        fc.array(text(name), { maxLength: 2 }),
      );
      fc.assert(
        fc.property(text(name), fc.dictionary(key, value, { maxKeys: 3, noNullPrototype: true }), (user, args) => {
          const message = {
            role: 'assistant',
            content: '',
            tool_calls: [{ id: 'abcdefghi', type: 'function', function: { name: 'look_up', arguments: args } }],
          };
          const parsed = roundTrip(name, user, message);
          expect(parsed).toMatchObject({ status: 'ok', broken: [], message: { content: '' } });
          expect(parsed.message.tool_calls).toHaveLength(1);
          const { name: called, arguments: given } = parsed.message.tool_calls![0]!.function;
          expect(called).toBe('look_up');
          expect(JSON.parse(given)).toEqual(args);
          // What was parsed renders as what it was parsed from.
          const again = rendererOf(name).render([{ role: 'user', content: 'q' }, parsed.message], { tools }).text;
          expect(again).toBe(
            rendererOf(name).render(
              [
                { role: 'user', content: 'q' },
                { ...message, tool_calls: parsed.message.tool_calls },
              ],
              { tools },
            ).text,
          );
        }),
        { numRuns: 100, seed: 12 },
      );
    },
  );
});
