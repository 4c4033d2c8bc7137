import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TurnEvent } from './turn-event.js';
import { callBeginning, type ToolFormat, turnFormatOf, turnParser } from './turn-format.js';

const tools = ['add', 'get_weather'];
type Piece = string | { readonly control: string };

/** Events with neighbouring texts joined, so that how a turn was cut into pieces doesn't show. */
function read(
  format: ToolFormat,
  pieces: readonly Piece[],
  { cut = false, thinking = false, isThinking = false, offered = tools } = {},
): TurnEvent[] {
  const parser = turnParser({ tools: format, thinking }, { tools: offered, isThinking });
  const events = pieces.flatMap((piece) =>
    typeof piece === 'string' ? parser.text(piece) : parser.control(piece.control),
  );
  return joined([...events, ...parser.end({ cut })]);
}

function joined(events: readonly TurnEvent[]): TurnEvent[] {
  const result: TurnEvent[] = [];
  for (const event of events) {
    const last = result.at(-1);
    if ((event.type === 'text' || event.type === 'reasoning') && last?.type === event.type)
      result[result.length - 1] = { type: event.type, text: (last as typeof event).text + event.text }; // true: of the same type
    else result.push(event);
  }
  return result;
}

const call = (args: string, name = 'add'): TurnEvent => ({ type: 'tool-call', name, arguments: args });
const characters = (text: string): string[] => Array.from(text);

describe('a turn of a Hermes model', () => {
  const whole = 'Let me see.\n<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2.0}}\n</tool_call>';

  it('has its text and its calls, arguments as the model wrote them, however it is cut into pieces', () => {
    const expected = [{ type: 'text', text: 'Let me see.' }, call('{"a": 1, "b": 2.0}')];
    expect(read('hermes', [whole])).toEqual(expected);
    expect(read('hermes', characters(whole))).toEqual(expected);
  });

  it('may have several calls, and the closing mark as text inside an argument', () => {
    const two =
      '<tool_call>{"name":"add","arguments":{"a":"</tool_call>"}}</tool_call>\n<tool_call>{"name":"get_weather"}</tool_call>';
    expect(read('hermes', characters(two))).toEqual([call('{"a":"</tool_call>"}'), call('{}', 'get_weather')]);
  });

  it.each([
    ['cut arguments', '<tool_call>\n{"name": "add", "arguments": {"a": 1', true, 'cut'],
    ['a cut closing mark', '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool', true, 'cut'],
    [
      'two objects in a row',
      '<tool_call>{"name":"add","arguments":{}}{"name":"add","arguments":{}}</tool_call>',
      false,
      'not-json',
    ],
    [
      'a doubled name',
      '<tool_call>{"name":"add","name":"get_weather","arguments":{}}</tool_call>',
      false,
      'doubled-key',
    ],
    ['a doubled argument', '<tool_call>{"name":"add","arguments":{"a":1,"a":2}}</tool_call>', false, 'doubled-key'],
    ['no name', '<tool_call>{"arguments":{}}</tool_call>', false, 'wrong-shape'],
    ['arguments that are a text', '<tool_call>{"name":"add","arguments":"{}"}</tool_call>', false, 'wrong-shape'],
    ['a tool that was not offered', '<tool_call>{"name":"rm","arguments":{}}</tool_call>', false, 'unknown-tool'],
    ['no JSON', '<tool_call>add(1, 2)</tool_call>', false, 'not-json'],
  ] as const)('%s is no call, and keeps its text', (_name, text, cut, reason) => {
    const expected = [{ type: 'broken-call', raw: text, reason }];
    expect(read('hermes', [text], { cut })).toEqual(expected);
    expect(read('hermes', characters(text), { cut })).toEqual(expected);
  });

  it('keeps whole calls before a broken one', () => {
    const text = '<tool_call>{"name":"add","arguments":{}}</tool_call>\n<tool_call>{"name":"ad';
    expect(read('hermes', characters(text), { cut: true })).toMatchObject([call('{}'), { reason: 'cut' }]);
  });

  it('is all text where no tools were offered', () => {
    expect(read('hermes', [whole], { offered: [] })).toEqual([{ type: 'text', text: whole }]);
  });

  it('loses nothing of a text without calls', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('<', 'tool', '_call', ' ', '\n', 'x', '</'), { maxLength: 40 }), (parts) => {
        const text = parts.join('');
        fc.pre(!text.includes('<tool_call>'));
        expect(read('hermes', parts)).toEqual(text === '' ? [] : [{ type: 'text', text }]);
      }),
    );
  });
});

describe('a turn of a Llama 3 model', () => {
  it('is a call where it is an object with a name, marked or not', () => {
    const text = '{"name": "add", "parameters": {"a": 1}}';
    expect(read('llama', characters(text))).toEqual([call('{"a": 1}')]);
    expect(read('llama', [{ control: '<|python_tag|>' }, text])).toEqual([call('{"a": 1}')]);
    expect(read('llama', [`${text}; ${text}`])).toEqual([call('{"a": 1}'), call('{"a": 1}')]);
  });

  it('is text where it is another object, or begins with a word', () => {
    for (const text of ['{"answer": 42}', '{}', 'It is {"name": "add"}', '  hello'])
      expect(read('llama', characters(text))).toEqual([{ type: 'text', text }]);
  });

  it('is broken as a whole where a part of it is no call', () => {
    const text = '{"name": "add", "parameters": {}} {"name": "add", "parameters": {}}';
    expect(read('llama', [text])).toEqual([{ type: 'broken-call', raw: text, reason: 'not-json' }]);
    const cut = '{"name": "add", "parameters": {"a"';
    expect(read('llama', [cut], { cut: true })).toEqual([{ type: 'broken-call', raw: cut, reason: 'cut' }]);
  });
});

describe('a turn of a Mistral model', () => {
  const mark = { control: '[TOOL_CALLS]' };

  it('has its calls behind the control token alone', () => {
    const list = '[{"name": "add", "arguments": {"a": 1}}, {"name": "get_weather", "arguments": {}}]';
    expect(read('mistral', [mark, ...characters(list)])).toEqual([call('{"a": 1}'), call('{}', 'get_weather')]);
    expect(read('mistral', [`[TOOL_CALLS]${list}`])).toEqual([{ type: 'text', text: `[TOOL_CALLS]${list}` }]);
  });

  it('is broken where the list is cut, doubled or none', () => {
    for (const [text, cut, reason] of [
      ['[{"name": "add", "arguments": {}}', true, 'cut'],
      ['[{"name": "add", "arguments": {}}][]', false, 'not-json'],
      ['{"name": "add", "arguments": {}}', false, 'not-json'],
      ['[]', false, 'not-json'],
    ] as const)
      expect(read('mistral', [mark, text], { cut })).toEqual([
        { type: 'broken-call', raw: `[TOOL_CALLS]${text}`, reason },
      ]);
  });
});

describe('a turn of gpt-oss', () => {
  const control = (token: string) => ({ control: `<|${token}|>` });
  const [channel, message, end, start, constrain] = ['channel', 'message', 'end', 'start', 'constrain'].map(
    control,
  ) as [Piece, Piece, Piece, Piece, Piece]; // true: five in, five out

  it('has reasoning, text before a call, and the call', () => {
    const turn = [
      ...[channel, 'analysis', message, 'Add ', 'them.', end],
      ...[start, 'assistant', channel, 'commentary', message, 'I add.', end],
      ...[start, 'assistant', channel, 'commentary to=functions.add ', constrain, 'json', message, '{"a":1}'],
    ];
    expect(read('harmony', turn)).toEqual([
      { type: 'reasoning', text: 'Add them.' },
      { type: 'text', text: 'I add.' },
      call('{"a":1}'),
    ]);
    expect(read('harmony', turn, { cut: true }).at(-1)).toMatchObject({ type: 'broken-call', reason: 'cut' });
    const other = [' to=functions.add', channel, 'commentary json', message, '{}', control('call')];
    expect(read('harmony', other)).toEqual([call('{}')]);
  });

  it('has its final answer, and keeps a malformed header as it is', () => {
    expect(read('harmony', [channel, 'final', message, '42'])).toEqual([{ type: 'text', text: '42' }]);
    expect(read('harmony', [channel, 'nowhere', message, '42'])).toEqual([
      { type: 'broken-call', raw: '<|channel|>nowhere<|message|>42', reason: 'bad-header' },
    ]);
    expect(read('harmony', [channel, 'fin'], { cut: true })).toMatchObject([{ type: 'broken-call', reason: 'cut' }]);
    expect(read('harmony', [])).toEqual([]);
  });
});

describe('reasoning', () => {
  it('is apart from the answer and its calls', () => {
    const text = '<think>\nHm, 1 < 2.\n</think>\n\nIt is 3.\n<tool_call>{"name":"add","arguments":{}}</tool_call>';
    const expected = [{ type: 'reasoning', text: 'Hm, 1 < 2.' }, { type: 'text', text: 'It is 3.' }, call('{}')];
    expect(read('hermes', [text], { thinking: true })).toEqual(expected);
    expect(read('hermes', characters(text), { thinking: true })).toEqual(expected);
  });

  it('is what a prompt that ends within it is gone on with, to its end or to the limit', () => {
    const open = { thinking: true, isThinking: true };
    expect(read('none', ['so\n</think>\n\n4'], open)).toEqual([
      { type: 'reasoning', text: 'so' },
      { type: 'text', text: '4' },
    ]);
    expect(read('none', ['so on'], { ...open, cut: true })).toEqual([{ type: 'reasoning', text: 'so on' }]);
  });

  it('is text where it does not begin the turn', () => {
    expect(read('none', characters('I <think> so'), { thinking: true })).toEqual([
      { type: 'text', text: 'I <think> so' },
    ]);
    expect(read('none', characters('<thin'), { thinking: true })).toEqual([{ type: 'text', text: '<thin' }]);
  });
});

describe('the format of a template', () => {
  it('is told from its marks; what can’t be read back is unknown', () => {
    const formatOf = (template: string) => turnFormatOf(template).tools;
    expect(formatOf('{{ messages }}')).toBe('none');
    expect(formatOf('{% if tools %}<tool_call>{"name": , "arguments": }{% endif %}')).toBe('hermes');
    expect(formatOf('{% if tools %}<tool_call><arg_key>{% endif %}')).toBe('unknown');
    expect(formatOf('{% if tools %}<tool_call><function=x>{% endif %}')).toBe('unknown');
    expect(formatOf('{% if tools %}Environment: ipython {"name": "parameters": }{% endif %}')).toBe('llama');
    expect(formatOf('{% if tools %}[TOOL_CALLS]{% endif %}')).toBe('mistral');
    expect(formatOf('{% if tools %}[TOOL_CALLS]name[ARGS]{% endif %}')).toBe('unknown');
    expect(formatOf('{% if tools %}<|channel|> <|call|>{% endif %}')).toBe('harmony');
    expect(formatOf('{% if tools %}<｜tool▁calls▁begin｜>{% endif %}')).toBe('unknown');
    expect(turnFormatOf('<think></think>').thinking).toBe(true);
  });

  it('says how a turn begins that must be a call, and that beginning is read as a part of it', () => {
    for (const [format, rest] of [
      ['hermes', ' {"a":1}}\n</tool_call>'],
      ['llama', ' {"a":1}}'],
      ['mistral', ' {"a":1}}]'],
    ] as const) {
      const { control, text } = callBeginning(format, 'add')!;
      expect(read(format, [...(control === '' ? [] : [{ control }]), text, rest])).toEqual([call('{"a":1}')]);
      expect(callBeginning(format, undefined)!.text).toMatch(/\{"name": "$/);
    }
    expect(callBeginning('unknown', 'add')).toBeUndefined();
  });
});
