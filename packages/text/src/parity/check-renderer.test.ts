import { type ChatModelName, chatModelFiles, chatModels } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { rendererFor } from '../renderers/renderer.js';
import { checkRenderer, referenceProgramFor } from './check-renderer.js';
import type { Finding } from './finding.js';
import { type ReferenceCase, readReferenceFile } from './parity-case.js';

const faults = (findings: readonly Finding[]): string[] =>
  findings.flatMap((finding) =>
    finding.status === 'different' ? [`${finding.case}/${finding.check}: ${finding.reason}`] : [],
  );
const question = { role: 'user', content: '1+1?' };
const reference = (row: Partial<ReferenceCase>) => ({
  cases: [{ case: 'given', messages: [question], tools: null, kwargs: {}, ...row }],
});
const ofReference = (name: ChatModelName, row: Partial<ReferenceCase>): readonly Finding[] =>
  checkRenderer(chatModelFiles(name), { reference: reference(row) }).findings.filter(({ case: of }) => of === 'given');

describe('the check of a renderer', () => {
  it.each(chatModels)('of %s finds no fault, and says what there was nothing to compare for', (name) => {
    const { findings, renderer } = checkRenderer(chatModelFiles(name));
    expect(faults(findings)).toEqual([]);
    const has = (check: Finding['check'], status: Finding['status']): boolean =>
      findings.some((finding) => finding.check === check && finding.status === status);
    for (const check of ['text', 'tokens', 'content', 'turns', 'parse'] as const)
      expect(has(check, 'same'), check).toBe(true);
    expect(has('tokens', 'not-comparable')).toBe(true);
    expect(has('parse', 'not-comparable')).toBe(renderer.tokenizer.turnFormat.tools === 'none');
    expect(has('prefix', 'noted')).toBe(['qwen3', 'gpt-oss', 'mistral'].includes(name));
  });

  const marks = '{{ m.role }}\n{{ m.content }}';
  const begin = '{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}';
  const template = (body: string): string => `{% for m in messages %}<|im_start|>${body}{% endfor %}${begin}`;
  it.each([
    ['turns without an end', `${marks}\n`, 'answered/turns: the turn ends without a token'],
    ['another end than sampling stops at', `${marks}<|endoftext|>`, 'answered/turns: the turn ends without a token'],
    [
      'content that can’t be told from the template',
      '{{ m.role }}\n{{ m.content | upper }}<|im_end|>\n',
      'control-text/text: the renderer refuses what the template takes',
    ],
  ])('finds %s', (_, body, fault) => {
    const found = faults(checkRenderer(chatModelFiles('chatml', template(body))).findings);
    expect(found.some((text) => text.startsWith(fault))).toBe(true);
  });
});

describe('a reference', () => {
  const text = '<|im_start|>user\n1+1?<|im_end|>\n';

  it('is compared byte by byte, and the first difference told with what is around it', () => {
    expect(ofReference('chatml', { expected: text })).toMatchObject([{ check: 'reference-text', status: 'same' }]);
    expect(ofReference('chatml', { expected: text.replace('1?', 'ü?') })).toMatchObject([
      {
        status: 'different',
        difference: {
          unit: 'byte',
          at: 19,
          expected: '<|im_start|>user\n1+ü?<|im_end|>\n',
          got: '<|im_start|>user\n1+1?<|im_end|>\n',
        },
      },
    ]);
    expect(ofReference('chatml', { error: 'TemplateError' })).toMatchObject([
      { status: 'different', reason: 'refused there, and not here' },
    ]);
    const refusing = chatModelFiles('chatml', "{{ raise_exception('never') }}<|im_start|>");
    const refused = (row: Partial<ReferenceCase>) => checkRenderer(refusing, { reference: reference(row) }).findings;
    expect(refused({ error: 'TemplateError' }).at(-1)).toMatchObject({ check: 'reference-text', status: 'same' });
    expect(refused({ expected: 'x' }).at(-1)).toMatchObject({
      status: 'different',
      reason: expect.stringMatching(/^refused here, and not there: /),
    });
  });

  it('is compared token by token', () => {
    const { tokenizer } = rendererFor(chatModelFiles('chatml'));
    const ids = tokenizer.encode(text, { parseSpecialTokens: true });
    expect(ofReference('chatml', { expected: text, ids })).toMatchObject([{}, { status: 'same' }]);
    const others = [...ids.slice(0, 2), ...[...'1+1?'].flatMap((char) => tokenizer.encode(char)), ...ids.slice(-2)];
    expect(ofReference('chatml', { expected: text, ids: others })).toMatchObject([
      {},
      { check: 'reference-tokens', status: 'different', difference: { unit: 'token', at: 2 } },
    ]);
  });

  it('that reads control tokens in content has other tokens by its nature; other ids than its own text has are a fault', () => {
    const messages = [{ role: 'user', content: '<|im_end|>' }];
    const expected = '<|im_start|>user\n<|im_end|><|im_end|>\n';
    const ids = rendererFor(chatModelFiles('chatml')).tokenizer.encode(expected, { parseSpecialTokens: true });
    expect(ofReference('chatml', { messages, expected, ids })).toMatchObject([{}, { status: 'not-comparable' }]);
    expect(ofReference('chatml', { messages, expected, ids: ids.slice(1) })).toMatchObject([
      {},
      { status: 'different' },
    ]);
  });

  it('is told the time that it was made at', () => {
    const source = `{{ strftime_now('%d %b %Y') }} {{ messages[0].content }}{# <|im_start|> #}`;
    const expected = '05 Aug 2025 1+1?';
    const files = chatModelFiles('chatml', source);
    const findings = (now: string) =>
      checkRenderer(files, { reference: { now, ...reference({ expected }) } }).findings.at(-1);
    expect(findings('2025-08-05T12:34:56')).toMatchObject({ status: 'same' });
    expect(findings('2025-08-06T12:34:56')).toMatchObject({ status: 'different' });
  });

  it.each([
    ['[', 'JSON'],
    ['[]', 'a list of cases'],
    ['{"cases": []}', 'a list of cases'],
    ['{"cases": [{"case": "a", "messages": []}]}', 'text, or an error'],
    ['{"cases": [{"case": "a", "messages": [], "expected": "", "ids": [1.5]}]}', 'a list of ids'],
    ['{"cases": [{"case": "a", "messages": [], "expected": "", "kwargs": []}]}', 'an object'],
    ['{"now": "soon", "cases": [{}]}', 'a time such as'],
  ])('that is none is refused: %s', (json, expected) => {
    expect(() => readReferenceFile(json)).toThrow(expected);
  });

  it('comes from a program in Python that holds the suite, in ASCII', () => {
    const program = referenceProgramFor(chatModelFiles('qwen3'), '/models/größe');
    expect(program).toMatch(/^[\x20-\x7e\n]+$/);
    expect(program).toContain('model = "/models/gr\\u00f6\\u00dfe"\n');
    const [, literal] = /json\.loads\((".*")\)\n/.exec(program)!;
    const json = literal!.replace(/\\U([0-9a-f]{8})/g, (_, hex: string) =>
      String.fromCodePoint(Number.parseInt(hex, 16)),
    );
    const cases = JSON.parse(JSON.parse(json) as string) as readonly { readonly case: string }[];
    expect(cases.map(({ case: name }) => name)).toContain('thinking-off');
    expect(cases[0]).toEqual({
      case: 'plain',
      messages: [{ role: 'user', content: 'What is 12 + 7?' }],
      tools: null,
      kwargs: { add_generation_prompt: true },
    });
  });
});
