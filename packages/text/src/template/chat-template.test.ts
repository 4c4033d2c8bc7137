import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ChatTemplate } from './chat-template.js';
import { parseExactJson } from './exact-json.js';
import { type ChatMessage, type JsonValue, normalizeMessages } from './messages.js';

const now = (): Date => new Date('2025-08-05T12:34:56');

function render(source: string, messages: readonly ChatMessage[] = [], rest: Record<string, JsonValue> = {}): string {
  const { add_generation_prompt: addGenerationPrompt = false, continue_final_message: go = false, ...variables } = rest;
  return new ChatTemplate({ source, specialTokens: { bos_token: '<s>' }, now }).render({
    messages: normalizeMessages(messages),
    tools: null,
    addGenerationPrompt: addGenerationPrompt === true,
    continueFinalMessage: go === true,
    variables,
  });
}

const turns =
  "{% for m in messages %}\n  {% if m.role == 'user' %}\nU:{{ m.content }}\n  {% else %}\nA:{{ m.content }}\n  {% endif %}\n{% endfor %}\n";

describe('a chat template', () => {
  it('drops the line break after a block and the blanks before it', () => {
    expect(
      render(turns, [
        { role: 'user', content: 'a' },
        { role: 'assistant', content: 'b' },
      ]),
    ).toBe('U:a\nA:b\n');
  });

  it('prints numbers as they were written, as int or float, in JSON and beside text', () => {
    const x = parseExactJson('[2.0, -0.0, 12345678901234567890, 1e400, 1.50, -0, 5]');
    const texts = ['2.0', '-0.0', '12345678901234567890', '1e400', '1.50', '-0', '5'];
    expect(render('{{ x | tojson }}', [], { x })).toBe(`[${texts.join(', ')}]`);
    expect(render('{% for n in x %}{{ n }} {{ n | string }} {{ "" ~ n }};{% endfor %}', [], { x })).toBe(
      texts.map((text) => `${text} ${text} ${text};`).join(''),
    );
    expect(render('{% for n in x %}{{ n is integer }},{% endfor %}', [], { x })).toBe(
      'false,false,true,false,false,true,true,',
    );
    expect(render('{{ x[0] + 1 }} {{ x[0] == 2 }}', [], { x })).toBe('3.0 true');
  });

  it('strips what Python takes for white space, or the characters that are named', () => {
    const text = '\ufeff\x1f\x85 \n a b \u2003';
    for (const strip of ['{{ x | trim }}', '{{ x.strip() }}'])
      expect(JSON.stringify(render(strip, [], { x: text }))).toBe(JSON.stringify('\ufeff\x1f\x85 \n a b'));
    expect(render('{{ x | trim }}', [], { x: text.slice(1) })).toBe('a b');
    expect(render("[{{ x.strip('\n') }}][{{ x.lstrip('\n ') }}][{{ x.rstrip('b\n') }}]", [], { x: '\n a b\n\n' })).toBe(
      '[ a b][a b\n\n][\n a ]',
    );
    expect(() => render('{{ m.strip() }}', [], { m: { strip: 'x' } })).toThrow();
  });

  it('writes JSON as Python does', () => {
    const value = { é: ['"\u2028', 1e-7, 0.1, 1e21, true, null], empty: {}, n: -2 };
    expect(render('{{ x | tojson }}', [], { x: value })).toBe(
      '{"é": ["\\"\u2028", 1e-07, 0.1, 1e+21, true, null], "empty": {}, "n": -2}',
    );
    expect(render('{{ x | tojson(indent=2, sort_keys=true) }}', [], { x: { b: [1], a: [] } })).toBe(
      '{\n  "a": [],\n  "b": [\n    1\n  ]\n}',
    );
    expect(render("{{ x | tojson(separators=(',', ':'), ensure_ascii=true) }}", [], { x: ['é', 1] })).toBe(
      '["\\u00e9",1]',
    );
  });

  it('writes the date of the clock it was given, in English', () => {
    expect(render("{{ strftime_now('%A, %d %b %Y, %-d %B %j %I:%M %p %%') }}")).toBe(
      'Tuesday, 05 Aug 2025, 5 August 217 12:34 PM %',
    );
  });

  it('drops null values and knows reasoning by any of its names', () => {
    const source = '{{ messages[0].thinking }}|{{ messages[0].reasoning_content }}|{{ messages[0].name is defined }}';
    expect(render(source, [{ role: 'assistant', content: '', reasoning: 'r', name: null }])).toBe('r|r|false');
  });

  it('passes special tokens and variables', () => {
    expect(render('{{ bos_token }}{{ enable_thinking }}', [], { enable_thinking: false })).toBe('<s>false');
  });

  it('leaves the last message open on request, trimmed where the template trims', () => {
    const chat = [
      { role: 'user', content: 'Count' },
      { role: 'assistant', content: 'one, ' },
    ];
    expect(render(turns, chat, { continue_final_message: true })).toBe('U:Count\nA:one, ');
    expect(
      render('{% for m in messages %}<{{ m.content | trim }}>{% endfor %}', chat, { continue_final_message: true }),
    ).toBe('<Count><one,');
  });

  it('refuses what the reference refuses', () => {
    const refused: [string, readonly ChatMessage[]][] = [
      ["{{ raise_exception('roles must alternate') }}", []],
      ["{{ 'x' + messages[0].content }}", [{ role: 'user', content: [{ type: 'text', text: 'a' }] }]],
      ["{{ 'x' + messages[0].content }}", [{ role: 'user' }]],
      ["{{ messages[0]['content'] }}", []],
    ];
    for (const [source, messages] of refused) {
      expect(() => render(source, messages)).toThrow(expect.objectContaining({ code: 'invalid_argument' }));
    }
    expect(() => render("{{ raise_exception('roles must alternate') }}")).toThrow(
      'some that it refuses: roles must alternate',
    );
  });

  it("never repeats a message's content in an error", () => {
    const secret = [{ role: 'user', content: 'my secret' }];
    expect(() => render('{{ raise_exception(messages[0].content) }}', secret)).toThrow(
      'a complaint that quotes a message',
    );
    expect(() => render('{{ raise_exception(messages[0].content) }}', secret)).not.toThrow('secret');
  });

  it('refuses roles that are not plain words, and data that is not JSON', () => {
    const odd: unknown[] = [[{ role: '<|im_end|>' }], [{ content: 'x' }], ['x'], 'x', [{ role: 'user', x: () => 1 }]];
    for (const messages of odd) {
      expect(() => normalizeMessages(messages as ChatMessage[])).toThrow(
        expect.objectContaining({ code: 'invalid_argument' }),
      );
    }
    const loop: Record<string, unknown> = { role: 'user' };
    loop.self = loop;
    expect(() => normalizeMessages([loop as unknown as ChatMessage])).toThrow('nesting of at most 64');
  });

  it.each([
    ['a range without end', '{% for i in range(1000000000) %}x{% endfor %}'],
    [
      'nested loops',
      '{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{% endfor %}{% endfor %}{% endfor %}',
    ],
    [
      'doubling text',
      "{% set ns = namespace(t='xxxxxxxx') %}{% for a in range(60) %}{% set ns.t = ns.t + ns.t %}{% endfor %}",
    ],
    ['an expression nested without end', `{{ ${'('.repeat(200_000)}1${')'.repeat(200_000)} }}`],
  ])('stops %s', (_name, source) => {
    expect(() => render(source)).toThrow(expect.objectContaining({ code: 'model_invalid' }));
  });
});

/** Set to a checkout that holds `fixtures/templates`, to compare with 580 renderings of public templates. */
const reference = process.env.LOOPWRIGHT_SHARED;
const cases = reference === undefined ? '' : join(reference, 'fixtures/templates');

interface ReferenceFile {
  readonly template_file: string;
  readonly special_tokens: Record<string, string>;
  readonly cases: {
    readonly case: string;
    readonly messages: ChatMessage[];
    readonly tools: JsonValue;
    readonly kwargs: Record<string, JsonValue>;
    readonly expected?: string;
  }[];
}

describe.runIf(reference !== undefined && existsSync(cases))('public templates', () => {
  const names = reference === undefined ? [] : readdirSync(cases).filter((name) => name.endsWith('.json'));
  it.each(names)('%s renders as the reference does', (name) => {
    const file = parseExactJson(readFileSync(join(cases, name), 'utf8')) as unknown as ReferenceFile;
    const source = readFileSync(join(cases, '..', file.template_file), 'utf8');
    const template = new ChatTemplate({ source, specialTokens: file.special_tokens, now });
    for (const row of file.cases) {
      const { add_generation_prompt: begin, continue_final_message: go, ...variables } = row.kwargs;
      const run = (): string =>
        template.render({
          messages: normalizeMessages(row.messages),
          tools: row.tools,
          addGenerationPrompt: begin === true,
          continueFinalMessage: go === true,
          variables,
        });
      if (row.expected === undefined) expect(run, row.case).toThrow();
      else expect(run(), row.case).toBe(row.expected);
    }
  });
});
