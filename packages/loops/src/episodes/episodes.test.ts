import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { chatTokenizer, forgetfulTemplate } from '../testing/chat.js';
import { one, talk } from '../testing/talk.js';
import { sumsWithTool } from '../testing/tool-example.js';
import type { ModelTurn } from './environment.js';
import { episodeDatums } from './episode-datums.js';
import type { EpisodeRollout } from './run-episode.js';

const tokenizer = chatTokenizer();
const end = '<|im_end|>';
const encode = (text: string): number[] => tokenizer.encode(text, { parseSpecialTokens: true });
/** A flat input of a loss. */
const numbers = (values: ArrayLike<unknown>): number[] => Array.from(values, Number);

const flat = (rollout: EpisodeRollout): number[][] =>
  rollout.sequences.map((segments) => segments.flatMap(({ context, answer }) => [...context, ...answer.tokens]));

describe('an episode', () => {
  it('is one sequence of what was given and what was sampled, with loss on the latter alone', async () => {
    const { rollout, sampler } = await one(talk(['And?']), [`Hi there${end}`, `Bye${end}`]);
    expect(rollout).toMatchObject({ status: 'done', reward: 1.25, grade: { status: 'ok', reward: 1 } });
    const first = '<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n';
    const second = `${first}Hi there<|im_end|>\n<|im_start|>user\nAnd?<|im_end|>\n<|im_start|>assistant\n`;
    expect(sampler.asked.map(({ prompt }) => prompt)).toEqual([encode(first), encode(second)]);
    expect(flat(rollout)).toEqual([encode(`${second}Bye${end}`)]);

    const [datum, ...others] = episodeDatums({ rollout, advantage: [2, -1] });
    expect(others).toEqual([]);
    const whole = encode(`${second}Bye${end}`);
    expect(datum!.modelInput).toEqual(whole.slice(0, -1));
    expect(datum!.lossFnInputs.targetTokens).toEqual(whole.slice(1));
    const trained = numbers(datum!.lossFnInputs.weights).flatMap((weight, t) => (weight === 1 ? [t + 1] : []));
    const [hi, bye] = [encode(`Hi there${end}`), encode(`Bye${end}`)];
    const places = [...hi.keys()].map((i) => encode(first).length + i);
    places.push(...[...bye.keys()].map((i) => encode(second).length + i));
    expect(trained).toEqual(places);
    const at = (list: ArrayLike<unknown>) => trained.map((t) => list[t - 1]);
    expect(at(datum!.lossFnInputs.advantages)).toEqual([...hi.map(() => 2), ...bye.map(() => -1)]);
    expect(at(datum!.lossFnInputs.logprobs)).toEqual([hi, bye].flatMap((ids) => ids.map((_, i) => -(i + 1) / 8)));
  });

  it('keeps the ids that were sampled where their text has others, and counts it', async () => {
    const letters = [...'Hello'].flatMap((letter) => encode(letter));
    expect(letters).not.toEqual(encode('Hello'));
    const { rollout, sampler } = await one(talk(['And?']), [[...letters, ...encode(end)], end]);
    expect(rollout).toMatchObject({ status: 'done', retokenizedTurns: 1 });
    expect(rollout.sequences).toHaveLength(1);
    const before = sampler.asked[0]!.prompt;
    expect(sampler.asked[1]!.prompt.slice(before.length, before.length + letters.length)).toEqual(letters);
    expect(tokenizer.decode(sampler.asked[1]!.prompt, { skipSpecialTokens: false })).toContain(`Hello${end}\n`);
  });

  it('ends a turn that was cut by the limit of tokens for the model, without loss on that end', async () => {
    const { rollout, sampler } = await one(talk(['And?']), ['Hello wor', end]);
    expect(rollout.turns[0]!.turn).toMatchObject({ text: 'Hello wor', stopReason: 'length' });
    expect(tokenizer.decode(sampler.asked[1]!.prompt, { skipSpecialTokens: false })).toContain(`Hello wor${end}\n`);
    const [datum] = episodeDatums({ rollout, advantage: 1 });
    const sampled = rollout.turns.flatMap(({ sequence }) => sequence.tokens).length;
    expect(numbers(datum!.lossFnInputs.weights).filter((weight) => weight === 1)).toHaveLength(sampled);
  });

  it('begins a new sequence where the template forgets what was said, and trains each answer once', async () => {
    const forgetful = chatTokenizer(forgetfulTemplate);
    const said = [`<think>hmm</think>Hi${end}`, `<think>so</think>Bye${end}`];
    const { rollout, sampler } = await one(talk(['And?']), said, { tokenizer: forgetful });
    expect(rollout.turns.map(({ turn }) => [turn.reasoning, turn.text])).toEqual([
      ['hmm', 'Hi'],
      ['so', 'Bye'],
    ]);
    expect(forgetful.decode(sampler.asked[1]!.prompt, { skipSpecialTokens: false })).not.toContain('hmm');
    expect(rollout.sequences.map((segments) => segments.map(({ turn }) => turn))).toEqual([[0], [1]]);
    const data = episodeDatums({ rollout, advantage: 1 });
    const trained = data.map(({ lossFnInputs: { weights, targetTokens } }) =>
      numbers(targetTokens).filter((_, t) => weights[t] === 1),
    );
    expect(trained).toEqual(said.map(encode));
  });

  it('takes examples in its first messages for context, not for answers', async () => {
    const environment = talk(['And?'], {
      begin: () => ({
        messages: [
          { role: 'user', content: 'a' },
          { role: 'assistant', content: 'b' },
          { role: 'user', content: 'c' },
        ],
        respond: ({ index }) =>
          index === 0 ? { messages: [{ role: 'user', content: 'e' }] } : { grade: { status: 'ok', reward: 0 } },
      }),
    });
    const { rollout } = await one(environment, [`d${end}`, `f${end}`]);
    expect(rollout.sequences.map((segments) => segments.length)).toEqual([2]);
  });
});

describe('tools', () => {
  const environment = sumsWithTool;
  const call = (args: string) => `<tool_call>\n{"name": "add", "arguments": ${args}}\n</tool_call>`;

  it('are run when they are called, and the model goes on from what it wrote', async () => {
    const { rollout, sampler } = await one(environment, [`${call('{"a": 1, "b": 2}')}${end}`, `3${end}`]);
    expect(rollout).toMatchObject({ status: 'done', reward: 1 });
    expect(rollout.sequences).toHaveLength(1);
    expect(tokenizer.decode(sampler.asked[1]!.prompt, { skipSpecialTokens: false })).toContain(
      '</tool_call><|im_end|>\n<|im_start|>tool\n3<|im_end|>',
    );
  });

  it('that are called in another spelling than the template prints begin a new sequence', async () => {
    const { rollout } = await one(environment, [`${call('{"a":1,"b":2}')}${end}`, `3${end}`]);
    expect(rollout.sequences.map((segments) => segments.map(({ turn }) => turn))).toEqual([[0], [1]]);
  });

  it('that throw tell the model', async () => {
    const { sampler } = await one(environment, [`${call('{"a": "1"}')}${end}`, `3${end}`]);
    expect(tokenizer.decode(sampler.asked[1]!.prompt, { skipSpecialTokens: false })).toContain(
      '<|im_start|>tool\nerror: a and b are numbers<|im_end|>',
    );
  });

  it.each([
    ['cut off', call('{"a": 1, "b"').slice(0, -16), 'cut'],
    ['two objects in a row', call('{"a": 1, "b": 2}{"a": 3}'), 'not-json'],
    ['a doubled name', `<tool_call>\n{"name": "add", "name": "add", "arguments": {}}\n</tool_call>`, 'doubled-key'],
    ['no object as arguments', call('[1, 2]'), 'wrong-shape'],
  ])('are never run for a call with %s: the model is told, and the next request is valid', async (_, said, reason) => {
    const answer = reason === 'cut' ? said : `${said}${end}`;
    const { rollout, sampler } = await one(environment, [answer, `3${end}`]);
    expect(rollout.turns[0]!.turn.brokenCalls).toMatchObject([{ reason }]);
    expect(rollout).toMatchObject({ status: 'done', reward: 1 });
    const prompt = tokenizer.decode(sampler.asked[1]!.prompt, { skipSpecialTokens: false });
    expect(prompt).toContain(said.trim());
    expect(prompt).toContain(`error: the tool call could not be read (${reason})`);
    expect(prompt).not.toContain('<|im_start|>tool');
  });
});

describe('datums of an episode', () => {
  it('refuse advantages that are not one for each turn', async () => {
    const { rollout } = await one(talk(['And?']), [`a${end}`, `b${end}`]);
    expect(() => episodeDatums({ rollout, advantage: [1] })).toThrow('2 numbers');
    expect(() => episodeDatums({ rollout, advantage: Number.NaN })).toThrow('a finite number');
  });

  it('are none for a turn without tokens', () => {
    const turn = {} as ModelTurn; // not looked at
    const sequence = { tokens: [], logprobs: [], stopReason: 'stop' as const };
    const rollout = {
      turns: [{ turn, sequence, reward: 0, isRetokenized: false }],
      sequences: [[{ context: [1, 2], answer: sequence, turn: 0 }]],
    };
    expect(episodeDatums({ rollout, advantage: 1 })).toEqual([]);
  });
});

it('is what the guide shows', () => {
  const guide = readFileSync(new URL('../../../../docs/guides/environments.md', import.meta.url), 'utf8');
  const example = readFileSync(new URL('../testing/tool-example.ts', import.meta.url), 'utf8');
  expect(guide).toContain(`\`\`\`ts\n${example.replace('@loopwright/loops', 'loopwright')}\`\`\``);
});
