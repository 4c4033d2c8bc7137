import { LoopwrightError } from '@loopwright/protocol';
import { describe, expect, it } from 'vitest';
import { chatTokenizer, ScriptedSampler } from '../testing/chat.js';
import { rejection } from '../testing/rejection.js';
import { one, problem, talk } from '../testing/talk.js';
import type { Episode, EpisodeEnvironment, Reply } from './environment.js';
import { runEpisodes } from './run-episodes.js';

const tokenizer = chatTokenizer();
const end = '<|im_end|>';

describe('many episodes', () => {
  const answer = () => `Hi${end}`;
  const shared = { tokenizer, problems: [{ id: 'a' }, { id: 'b' }], groupSize: 3 };

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
