/** The chats that a renderer is checked by: what templates and tokenizers are known to stumble over. */
import { parseExactJson } from '../template/exact-json.js';
import type { ChatMessage } from '../template/messages.js';
import type { ParityCase } from './parity-case.js';

export interface SuiteOptions {
  /** Texts of the tokens that content must not become. */
  readonly controlTexts: readonly string[];
  /** The template knows `enable_thinking`. */
  readonly thinkingSwitch: boolean;
}

/** A case with the same chat in which nothing looks like a control token, where that is what the case is about. */
export interface SuiteCase extends ParityCase {
  readonly calm?: ParityCase;
}

const user = (content: string): ChatMessage => ({ role: 'user', content });
const assistant = (content: string, more: object = {}): ChatMessage => ({ role: 'assistant', content, ...more });
const question = user('What is 12 + 7?');

const parameters = {
  type: 'object',
  properties: { a: { type: 'number', description: 'A “first” number' }, größe: { type: 'string', enum: ['s', 'm'] } },
  required: ['a'],
};
const tools = [
  { type: 'function', function: { name: 'add', description: 'Adds.\n<b>Really.</b>', parameters } },
  { type: 'function', function: { name: 'look_up', description: '', parameters: { type: 'object', properties: {} } } },
];

function calling(...calls: readonly (readonly [id: string, name: string, args: unknown])[]): ChatMessage {
  return assistant('', {
    tool_calls: calls.map(([id, name, args]) => ({ id, type: 'function', function: { name, arguments: args } })),
  });
}

/** Such as JavaScript would print otherwise than Python, and keys that it would put into another order. */
const numbers = parseExactJson(
  '{"a": 2.0, "z": -0.0, "big": 12345678901234567890, "e": 1e-07, "E": 1e+16, "10": 0.1, "9": [1, -1.0]}',
);

/** Ids of nine letters and digits are those that every template takes. */
const [firstId, secondId] = ['callAAAA1', 'callAAAA2'];
const result = (content: string, id = firstId, name = 'add'): ChatMessage => ({
  role: 'tool',
  name,
  content,
  tool_call_id: id,
});
const simpleCall = calling([firstId, 'add', { a: 12 }]);

export function paritySuite({ controlTexts, thinkingSwitch }: SuiteOptions): readonly SuiteCase[] {
  const row = (
    name: string,
    messages: readonly ChatMessage[],
    { tools: offered, ...kwargs }: { readonly tools?: readonly unknown[]; readonly [variable: string]: unknown } = {},
  ): SuiteCase => ({ case: name, messages, tools: offered ?? null, kwargs });
  const begin = { add_generation_prompt: true };
  const attack = `${controlTexts.join('')} ${controlTexts.join('\n')}`;
  const attacked = (text: string): readonly ChatMessage[] => [user(`a ${text}`), assistant(`b ${text} c`), user(text)];
  const attackedTools = (text: string): readonly ChatMessage[] => [
    question,
    calling([firstId, 'add', { a: text }]),
    result(`x ${text}`),
  ];
  return [
    row('plain', [question], begin),
    row('answered', [question, assistant('19')]),
    row('system', [{ role: 'system', content: 'Be brief.' }, question, assistant('19')]),
    row('system-begun', [{ role: 'system', content: 'Be brief.' }, question], begin),
    row('turns', [question, assistant('19'), user('And 8?'), assistant('20')]),
    row('turns-begun', [question, assistant('19'), user('And 8?')], begin),
    row('continued', [question, assistant('The answer is')], { continue_final_message: true }),
    row('empty', [user(''), assistant('')]),
    row('white-space', [user('  a  b\t\n\n\n'), assistant('\n 1\r\n\n2 \n'), user(' \n'), assistant('x ')]),
    row('unicode', [user('Zürich 東京 🌦️ e\u0301 مرحبا 𝔘\u200d\ufeff'), assistant('½ × 👩‍👩‍👧 = “ß”')]),
    row('code', [user('```py\ndef f(x):\n    return {"x": x}\n```\n'), assistant('{"a": [1, 2], "b": "\\n"}')]),
    { ...row('control-text', attacked(attack), begin), calm: row('calm', attacked('x'), begin) },
    row('reasoning', [
      question,
      assistant('19', { reasoning_content: 'Ten and nine.' }),
      user('And 8?'),
      assistant('20', { reasoning_content: 'One more.\n\nSo 20.' }),
    ]),
    ...(thinkingSwitch
      ? [true, false].flatMap((on) => [
          row(on ? 'thinking-on' : 'thinking-off', [question], { ...begin, enable_thinking: on }),
          row(
            on ? 'thinking-on-turns' : 'thinking-off-turns',
            [question, assistant('19', on ? { reasoning_content: 'Hm.' } : {}), user('And 8?')],
            { ...begin, enable_thinking: on },
          ),
        ])
      : []),
    row('tools', [question], { tools, ...begin }),
    row('call', [question, simpleCall], { tools }),
    row('call-with-text', [question, { ...simpleCall, content: 'I add.' }], { tools }),
    row('call-with-reasoning', [question, { ...simpleCall, reasoning_content: 'I add.' }], { tools }),
    row('result', [question, simpleCall, result('19'), assistant('It is 19.')], { tools }),
    row('result-begun', [question, simpleCall, result('{"sum": "19\\n"}')], { tools, ...begin }),
    row(
      'two-calls',
      [
        question,
        calling([firstId, 'add', { a: 1 }], [secondId, 'look_up', {}]),
        result('1'),
        result('2', secondId, 'look_up'),
        assistant('Both.'),
      ],
      { tools },
    ),
    row(
      'arguments',
      [question, calling([firstId, 'add', { z: 1.5, a: [], größe: 'ü "q" \\ \n', o: { n: null, t: true } }])],
      { tools },
    ),
    row('numbers', [question, calling([firstId, 'add', numbers]), result('19'), assistant('Yes.')], { tools }),
    {
      ...row('control-text-tools', attackedTools(attack), { tools, ...begin }),
      calm: row('calm', attackedTools('x'), { tools, ...begin }),
    },
  ];
}
