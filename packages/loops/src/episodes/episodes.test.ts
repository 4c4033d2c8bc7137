import { readFileSync } from 'node:fs';
import { LoopwrightError } from '@loopwright/protocol';
import { describe, expect, it } from 'vitest';
import { chatTokenizer, forgetfulTemplate, type Scripted, ScriptedSampler } from '../testing/chat.js';
import { sumsWithTool } from '../testing/tool-example.js';
import type { Episode, EpisodeEnvironment, EpisodeProblem, ModelTurn, Reply } from './environment.js';
import { episodeDatums } from './episode-datums.js';
import type { EpisodeRollout } from './run-episode.js';
import { type RunEpisodesOptions, runEpisodes } from './run-episodes.js';

const tokenizer = chatTokenizer();
const end = '<|im_end|>';
const encode = (text: string): number[] => tokenizer.encode(text, { parseSpecialTokens: true });
const problem: EpisodeProblem = { id: 'p' };

/** Says `replies` one after the other, then the grade. */
function talk(
  replies: readonly string[],
  extra: Partial<EpisodeEnvironment> & Partial<Episode> = {},
): EpisodeEnvironment {
  const { unfinished, close, ...environment } = extra;
  return {
    name: 'talk',
    draw: () => problem,
    begin: () => ({
      messages: [{ role: 'user', content: 'Hello' }],
      respond: ({ index }): Reply =>
        index < replies.length
          ? { messages: [{ role: 'user', content: replies[index]! }], reward: 0.25 }
          : { grade: { status: 'ok', reward: 1 } },
      ...(unfinished === undefined ? {} : { unfinished }),
      ...(close === undefined ? {} : { close }),
    }),
    ...environment,
  };
}

async function one(
  environment: EpisodeEnvironment,
  said: readonly Scripted[],
  options: Partial<RunEpisodesOptions<EpisodeProblem>> = {},
): Promise<{ rollout: EpisodeRollout; sampler: ScriptedSampler }> {
  const sampler = new ScriptedSampler(options.tokenizer ?? tokenizer, () => said[sampler.asked.length - 1] ?? end);
  const shared = { sampler, tokenizer, environment, problems: [problem], groupSize: 1, maxFailureShare: 1 };
  const [group] = await runEpisodes({ ...shared, ...options });
  return { rollout: group!.rollouts[0]!, sampler };
}

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

describe('many episodes', () => {
  const answer = () => `Hi${end}`;
  const shared = { tokenizer, problems: [{ id: 'a' }, { id: 'b' }], groupSize: 3 };
  const rejection = (promise: Promise<unknown>): Promise<LoopwrightError> =>
    promise.then(
      () => Promise.reject(new Error('nothing was refused')),
      (error: LoopwrightError) => error,
    );

  it('are the same for the same seed, and differ within a group', async () => {
    const draws: number[] = [];
    const environment = talk([], {
      begin: (_, { random }) => {
        draws.push(random.next());
        return { messages: [{ role: 'user', content: 'x' }], respond: () => ({ grade: { status: 'ok', reward: 0 } }) };
      },
    });
    const run = async (seed: number) => {
      draws.length = 0;
      const sampler = new ScriptedSampler(tokenizer, answer);
      await runEpisodes({ ...shared, sampler, environment, seed });
      return [...draws, ...sampler.asked.map(({ options }) => options.seed)];
    };
    const first = await run(1);
    expect(new Set(first).size).toBe(12);
    expect(await run(1)).toEqual(first);
    expect(await run(2)).not.toEqual(first);
  });

  it('run as many at once as was allowed', async () => {
    const sampler = new ScriptedSampler(tokenizer, async () => {
      await new Promise((resolve) => setImmediate(resolve));
      return answer();
    });
    const groups = await runEpisodes({ ...shared, sampler, environment: talk(['more']), concurrency: 2 });
    expect(sampler.mostOpen).toBe(2);
    expect(groups.map(({ problem: { id }, rollouts }) => [id, rollouts.length])).toEqual([
      ['a', 3],
      ['b', 3],
    ]);
  });

  it('end alone when their time is over, however they hang, and are closed', async () => {
    const timers: (() => void)[] = [];
    const closed: number[] = [];
    let episodes = 0;
    let signalOfHanging: AbortSignal | undefined;
    const environment = talk([], {
      begin: (_, { signal }) => {
        const me = episodes++;
        if (me === 1) signalOfHanging = signal;
        return {
          messages: [{ role: 'user', content: 'x' }],
          respond: () => (me === 1 ? new Promise<Reply>(() => {}) : { grade: { status: 'ok', reward: 1 } }),
          close: () => void closed.push(me),
        };
      },
    });
    let ended = 0;
    const groups = await runEpisodes({
      ...shared,
      sampler: new ScriptedSampler(tokenizer, answer),
      environment,
      after: (_, action) => {
        timers.push(action);
        return () => timers.splice(timers.indexOf(action), 1);
      },
      onRollout: () => {
        ended += 1;
        if (ended === 5) for (const action of [...timers]) action();
      },
    });
    const statuses = groups.flatMap(({ rollouts }) => rollouts.map(({ status }) => status));
    expect(statuses.filter((status) => status === 'timeout')).toHaveLength(1);
    expect(statuses.filter((status) => status === 'done')).toHaveLength(5);
    expect(signalOfHanging?.aborted).toBe(true);
    expect(closed.sort()).toEqual([0, 1, 2, 3, 4, 5]);
    expect(
      groups.flatMap(({ rollouts }) => rollouts).find(({ status }) => status === 'timeout')?.reward,
    ).toBeUndefined();
  });

  it.each([
    ['beginning', { begin: () => Promise.reject(new Error('no room')) }, 'environment_error'],
    [
      'answering',
      {
        begin: () => ({
          messages: [{ role: 'user', content: 'x' }],
          respond: () => {
            throw new Error('no room');
          },
        }),
      },
      'environment_error',
    ],
    [
      'a chat that the template refuses',
      { begin: () => ({ messages: [{ role: '<x>' }], respond: () => ({ messages: [] }) }) },
      'environment_error',
    ],
    [
      'a reward that is no number',
      {
        begin: () => ({
          messages: [{ role: 'user', content: 'x' }],
          respond: () => ({ messages: [], reward: Number.NaN }),
        }),
      },
      'environment_error',
    ],
  ] as const)('end alone when their environment fails in %s', async (_, broken, status) => {
    let episodes = 0;
    const healthy = talk([]);
    const environment: EpisodeEnvironment = {
      ...healthy,
      begin: (...args) => (episodes++ === 2 ? (broken.begin() as Episode | Promise<Episode>) : healthy.begin(...args)),
    };
    const groups = await runEpisodes({ ...shared, sampler: new ScriptedSampler(tokenizer, answer), environment });
    const rollouts = groups.flatMap((group) => group.rollouts);
    expect(rollouts.filter((rollout) => rollout.status === status)).toHaveLength(1);
    expect(rollouts.filter((rollout) => rollout.reward === 1)).toHaveLength(5);
    expect(rollouts.find((rollout) => rollout.status === status)?.error).toBeInstanceOf(Error);
  });

  it('stop the run when too many came to nothing, with the first cause and the counts', async () => {
    let asked = 0;
    const lost = new LoopwrightError({ code: 'connection_lost', message: 'gone' });
    const sampler = new ScriptedSampler(tokenizer, () => (asked++ % 2 === 0 ? Promise.reject(lost) : answer()));
    const error = await rejection(runEpisodes({ ...shared, sampler, environment: talk([]) }));
    expect(error).toMatchObject({
      code: 'rollouts_failed',
      cause: lost,
      details: { failed: 3, of: 6, sampling_error: 3 },
    });
  });

  it('count a grade that is no number as a failure of grading', async () => {
    const environment = talk([], {
      begin: () => ({
        messages: [{ role: 'user', content: 'x' }],
        respond: () => ({ grade: { status: 'ok', reward: Number.NaN } }),
      }),
    });
    const sampler = new ScriptedSampler(tokenizer, answer);
    const error = await rejection(runEpisodes({ ...shared, sampler, environment }));
    expect(error).toMatchObject({ code: 'rollouts_failed', details: { grader_error: 6 } });
  });

  it('are cancelled as a whole by the caller: what runs is told, and nothing goes on', async () => {
    const controller = new AbortController();
    const signals: AbortSignal[] = [];
    const environment = talk([], {
      begin: (_, { signal }) => {
        signals.push(signal);
        return { messages: [{ role: 'user', content: 'x' }], respond: () => new Promise<Reply>(() => {}) };
      },
    });
    const sampler = new ScriptedSampler(tokenizer, () => {
      if (sampler.asked.length === 6) setImmediate(() => controller.abort(new Error('enough')));
      return answer();
    });
    const error = await rejection(runEpisodes({ ...shared, sampler, environment, signal: controller.signal }));
    expect(error).toMatchObject({ code: 'cancelled' });
    expect(signals.map((signal) => signal.aborted)).toEqual(signals.map(() => true));
    expect(sampler.asked).toHaveLength(6);
  });

  const grade = (why: string) => ({ status: 'ok' as const, reward: why === 'turn_limit' ? -1 : -2 });

  it('are cut off by the limits of turns and of context, and are then worth what the environment says', async () => {
    const chatter = Array.from({ length: 9 }, () => 'more');
    const limited = await one(talk(chatter, { unfinished: grade }), [], { maxTurns: 3 });
    expect(limited.rollout).toMatchObject({ status: 'turn_limit', reward: 3 * 0.25 - 1 });
    expect(limited.rollout.turns).toHaveLength(3);
    const small = await one(talk(chatter, { unfinished: grade }), [], { maxContext: 40 });
    expect(small.rollout).toMatchObject({ status: 'context_full', grade: { reward: -2 } });
    const { tokens } = small.rollout.sequences[0]!.at(-1)!.answer;
    expect(tokens.length).toBeGreaterThan(0);
    const silent = await one(talk(chatter), [], { maxTurns: 3 });
    expect(silent.rollout.status).toBe('turn_limit');
    expect(silent.rollout.reward).toBeUndefined();
  });

  it('take a prompt that the model has no room for as a full context', async () => {
    const full = new LoopwrightError({
      code: 'context_length_exceeded',
      message: '33,000 tokens; the limit is 32,768',
    });
    const sampler: ScriptedSampler = new ScriptedSampler(tokenizer, () =>
      sampler.asked.length > 1 ? Promise.reject(full) : answer(),
    );
    const environment = talk(['more', 'more'], { unfinished: grade });
    const [group] = await runEpisodes({ ...shared, problems: [problem], groupSize: 1, sampler, environment });
    expect(group!.rollouts[0]).toMatchObject({ status: 'context_full', reward: 0.25 - 2 });
  });

  it.each([
    ['problems.length', { problems: [] }],
    ['groupSize', { groupSize: 0 }],
    ['maxTurns', { maxTurns: 0 }],
    ['timeoutMs', { timeoutMs: 0 }],
    ['concurrency', { concurrency: 0.5 }],
    ['maxFailureShare', { maxFailureShare: 2 }],
  ])('are refused with a wrong %s', async (field, wrong) => {
    const sampler = new ScriptedSampler(tokenizer, answer);
    const error = await rejection(runEpisodes({ ...shared, sampler, environment: talk([]), ...wrong }));
    expect(error).toMatchObject({ code: 'invalid_argument', details: { field: `options.${field}` } });
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
