import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Environment, Grade, Problem } from '../environments/environment.js';
import type { EpisodeEnvironment } from '../episodes/environment.js';
import { exactMatch } from '../graders/exact.js';
import { createGrader } from '../graders/grader.js';
import { numericAnswer } from '../graders/numeric.js';
import { regexMatch } from '../graders/regex.js';
import type { Task, TaskSettings } from '../tasks/task.js';
import { badFromGood } from './bad-from-good.js';
import { type TestGraderOptions, testGrader } from './test-grader.js';

const problems = Array.from({ length: 12 }, (_, i): Problem => {
  const [a, b] = [7 * i + 12, 3 * i + 5];
  return { id: `${a}+${b}`, question: `${a}+${b}=`, answer: String(a + b) };
});

/** Ten good and a hundred bad completions that stand for people's. */
const cases = problems.flatMap((problem) => {
  const good = { problem, label: 'good' as const, completion: `It is #### ${problem.answer}` };
  return [good, ...badFromGood(good)];
});

type Grading = Environment['grade'];

const right: Grading = createGrader({ components: [numericAnswer()] });

function taskWith(grade: Grading, extra: Partial<Task> = {}): Task {
  return {
    name: 'sums',
    environment: { name: 'sums', draw: (random) => random.pick(problems), grade },
    cases,
    ...extra,
  };
}

async function findingsOf(task: Task, options: TestGraderOptions = {}): Promise<string[]> {
  const { result } = await testGrader(task, options);
  return result.findings.map(({ name, level }) => `${level} ${name}`);
}

const given = (text: string): Grade => ({ status: 'ok', reward: /#### (-?\d+)$/.test(text) ? 1 : 0 });

afterEach(() => void vi.useRealTimers());

describe('the grader gate', () => {
  it('passes a grader that tells good from bad, without a word', async () => {
    const { result, outcomes } = await testGrader(taskWith(right));
    expect(result).toMatchObject({ outcome: 'pass', findings: [], wrong: [], cases: { labelled: cases.length } });
    expect(result.confusion).toMatchObject({ goodAccepted: 12, goodRejected: 0, badAccepted: 0, failed: 0 });
    expect(outcomes.every(({ isRight, isStable }) => isRight && isStable)).toBe(true);
  });

  it('refuses problems that no change could be seen in, before it grades any', async () => {
    const grade = vi.fn(right);
    const problem = { ...problems[0]!, exact: 85n };
    const odd = taskWith(grade, { cases: [{ problem, label: 'good', completion: '#### 85' }] });
    await expect(testGrader(odd)).rejects.toThrow(/problem 12\+5: expected one that JSON can hold.*BigInt.*as a text/);
    expect(grade).not.toHaveBeenCalled();
  });

  // A fault, and what makes it show.
  const faults: Readonly<Record<string, [Grading, TestGraderOptions?, TaskSettings?, string?]>> = {
    'grader/accepts-bad': [({ text }) => given(text)],
    'grader/rejects-good': [
      (answer) => (Number(answer.problem.answer) > 60 ? right(answer) : { status: 'ok', reward: 0 }),
    ],
    'grader/constant': [() => ({ status: 'ok', reward: 0.5 })],
    'grader/fails': [
      (answer) => {
        if (answer.text === '') throw new Error('no text');
        return right(answer);
      },
    ],
    'grader/timeout': [
      (answer) => (answer.text === '' ? new Promise<never>(() => undefined) : right(answer)),
      { timeoutMs: 40 },
    ],
    'grader/not-deterministic': [jittered()],
    'grader/form-outweighs-correctness': [
      createGrader({
        components: [numericAnswer(), regexMatch({ name: 'marked', pattern: '#### -?[0-9]', weight: 2 })],
      }),
      {},
      { correctReward: 3 },
    ],
    'grader/slow': [right, { stepSeconds: 0.001, now: clock(50) }, {}, 'warn'],
  };

  function jittered(): Grading {
    let calls = 0;
    return async (answer) => {
      const grade = await right(answer);
      calls += 1;
      return 'reward' in grade && grade.reward === 1 ? { ...grade, reward: 1 + (calls % 7) / 10 } : grade;
    };
  }

  function clock(stepMs: number): () => number {
    let now = 0;
    return () => {
      now += stepMs;
      return now;
    };
  }

  it.each(Object.entries(faults))('raises %s for its own fault, and nothing else', async (name, fault) => {
    const [grade, options = {}, settings = {}, level = 'stop'] = fault;
    expect(await findingsOf(taskWith(grade, { settings }), options)).toEqual([`${level} ${name}`]);
    const { result } = await testGrader(taskWith(grade, { settings }), options);
    expect(result.outcome).toBe(level === 'stop' ? 'fail' : 'pass');
    for (const { seen, remedy } of result.findings) expect(seen !== '' && remedy !== '').toBe(true);
  });

  it('says so where nobody labelled anything, and stops where there are no cases', async () => {
    expect(await findingsOf(taskWith(right, { cases: [] }))).toEqual(['warn grader/few-cases']);
    expect(await findingsOf(taskWith(right, { cases: [] }), { make: false })).toEqual(['stop grader/no-cases']);
  });

  it('finds that form outweighs correctness in a grader without components', async () => {
    const grade: Grading = ({ text, problem }) => {
      const number = /#### (-?[\d.,]+)$/.exec(text)?.[1];
      return { status: 'ok', reward: number === undefined ? 0 : number === problem.answer ? 1 : 0.6 };
    };
    expect(await findingsOf(taskWith(grade))).toEqual(['stop grader/form-outweighs-correctness']);
  });

  it('judges form by the kind of wrong answers that pays most, which others that pay nothing do not hide', async () => {
    const paying = (kinds: RegExp): Grading => {
      return ({ text, problem }) => {
        const [, number = ''] = /#### (\S+)$/.exec(text) ?? [];
        if (number === problem.answer) return { status: 'ok', reward: 1 };
        return { status: 'ok', reward: kinds.test(number) ? 0.6 : 0 };
      };
    };
    for (const [kind, form] of [
      ['sign', /^-\d+$/],
      ['epsilon', /^\d+\.01$/],
    ] as const) {
      const { result } = await testGrader(taskWith(paying(form)));
      expect(result.findings).toMatchObject([
        {
          name: 'grader/form-outweighs-correctness',
          seen: `wrong answers in the right form (${kind}) get 0.6 on average (empty ones 0), right ones 1`,
        },
      ]);
    }
  });

  it('finds a grader that takes the right answer anywhere among others, even as a number of its own', async () => {
    const grade: Grading = ({ text, problem }) => {
      const isThere = [...text.matchAll(/-?\d+(?:[.,]\d+)?/g)].some(([number]) => number === problem.answer);
      return { status: 'ok', reward: isThere ? 1 : 0 };
    };
    const { result } = await testGrader(taskWith(grade, { cases: [], train: problems }));
    expect(result.kinds.filter(({ wrong }) => wrong > 0)).toEqual([
      { kind: 'several-answers', label: 'bad', cases: 12, wrong: 12 },
    ]);
  });

  it('says what a repeat came to, and why a grading failed that gave no grade', async () => {
    const { outcomes } = await testGrader(taskWith(jittered()));
    const changed = outcomes.filter(({ isStable }) => !isStable);
    expect(changed.length).toBeGreaterThan(0);
    for (const { grade, grades } of changed) {
      expect(grades).toHaveLength(3);
      expect(grades[0]).toBe(grade);
      expect(new Set(grades.map((each) => 'reward' in each && each.reward)).size).toBeGreaterThan(1);
    }
    for (const given of [1, undefined, null, {}]) {
      const { outcomes: failed, result } = await testGrader(
        taskWith(() => given as never),
        { repeats: 1 },
      );
      expect(result.findings.map(({ name }) => name)).toEqual(['grader/fails']);
      expect(failed[0]?.grade).toMatchObject({ status: 'grader_error', error: { details: { field: 'grade' } } });
    }
  });

  it('takes what is no grade for a failure, of answers and of episodes', async () => {
    const odd = { status: 'correct?', reward: 1 } as never;
    const said = { details: { field: 'grade.status', got: 'correct?' } };
    const { result, outcomes } = await testGrader(taskWith(() => odd));
    expect(result.findings.map(({ name }) => name)).toEqual(['grader/fails']);
    expect(outcomes[0]?.grade).toMatchObject({ status: 'grader_error', error: said });
    // `unfinished` is a word of the gate's own: a grader that says it must not pass for an episode that goes on.
    for (const grade of [odd, { status: 'unfinished' } as never]) {
      const environment: EpisodeEnvironment<Problem> = {
        name: 'one',
        draw: (random) => random.pick(problems),
        begin: () => ({ messages: [], respond: () => ({ grade }) }),
      };
      const { confusion } = (await testGrader({ name: 'one', environment, cases })).result;
      expect(confusion.failed).toBe(cases.length);
    }
  });

  it('takes a sum of weights for right that is 1 but for rounding', async () => {
    const tenths = Array.from({ length: 10 }, (_, i) => ({ ...numericAnswer({ weight: 0.1 }), name: `n${i}` }));
    const { result, outcomes } = await testGrader(taskWith(createGrader({ components: tenths })));
    expect(outcomes[0]?.grade).toMatchObject({ reward: 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 });
    expect(outcomes[0]?.grade).not.toMatchObject({ reward: 1 });
    expect(result.outcome).toBe('pass');
  });

  it('takes the names of what is about correctness, where scores of few cases mislead', async () => {
    const grade = createGrader({ components: [numericAnswer({ weight: 1 }), exactMatch({ weight: 0 })] });
    const { result } = await testGrader(taskWith(grade), { correctness: ['exact'] });
    expect(result.components).toMatchObject([
      { name: 'numeric', role: 'form' },
      { name: 'exact', role: 'correctness', worth: 0 },
    ]);
  });

  it('tells speed, and how much faster keeps it under a tenth of a step', async () => {
    // Every look at the clock is 10 ms later, and there is one for each call: as if one ran after another.
    const { result } = await testGrader(taskWith(right, { settings: { groupSize: 10, groupsPerStep: 100 } }), {
      now: clock(10),
      stepSeconds: 9,
      repeats: 2,
    });
    const { speed } = result;
    expect(speed.alone).toEqual({ calls: 40, p50Ms: 10, p95Ms: 10, meanMs: 10 });
    expect(speed.callsPerStep).toBe(1000);
    expect(speed.secondsAdded.alone).toBeCloseTo(10);
    expect(speed.together).toMatchObject({ concurrency: 16, calls: 2 * cases.length - 40 });
    expect(speed.together?.overlap).toEqual({ speedUp: 1, serialShare: 1, isSerial: true });
    // 10 s alone; a ninth of 9 s is 1 s.
    expect(speed.parallelism).toEqual({ stepSeconds: 9, neededSpeedUp: expect.closeTo(10) });
    expect(result.findings).toMatchObject([
      { name: 'grader/slow', remedy: expect.stringMatching(/10 × as fast.*calls at once don't help/) },
    ]);
  });

  it('advises calls at once where they help: what waits for something else', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    const waits: Grading = async (answer) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return right(answer);
    };
    const settings = { groupSize: 10, groupsPerStep: 100 };
    const tested = testGrader(taskWith(waits, { settings }), { stepSeconds: 9, concurrency: 8 });
    await vi.advanceTimersByTimeAsync(20 * 3 * cases.length);
    const { speed, findings } = (await tested).result;
    expect(speed.together?.overlap?.speedUp).toBeGreaterThan(7);
    expect(speed.parallelism?.needed).toBeGreaterThanOrEqual(20);
    expect(findings[0]?.remedy).toMatch(/^make the grader faster, or let 2\d calls run at once$/);
  });

  it('replays labelled episodes, tool calls and all', async () => {
    const environment: EpisodeEnvironment<Problem> = {
      name: 'search',
      draw: (random) => random.pick(problems),
      begin: ({ question, answer }) => ({
        messages: [{ role: 'user', content: question }],
        respond({ text, toolCalls }) {
          if (toolCalls.length > 0) return { messages: [{ role: 'tool', content: '1' }], reward: 0.1 };
          return { grade: { status: 'ok', reward: text === answer ? 1 : 0 } };
        },
      }),
    };
    const call = { text: '', toolCalls: [{ name: 'search', arguments: { q: 'x' } }] };
    const problem = problems[0]!;
    const { result, outcomes } = await testGrader({
      name: 'search',
      environment,
      cases: [
        { problem, label: 'good', completion: [call, { text: problem.answer }] },
        { problem, label: 'bad', completion: [call], kind: 'stops at the call' },
      ],
    });
    expect(outcomes[0]?.grade).toEqual({ status: 'ok', reward: 1.1 });
    expect(outcomes[1]?.grade).toEqual({ status: 'unfinished' });
    expect(result.wrong).toEqual([]);
    expect(result.confusion.badRejected).toBeGreaterThan(5);
  });

  it('grades what took too long no more, and counts on to the end', async () => {
    const calls = new Map<string, number>();
    const grade: Grading = (answer) => {
      const { problem, text } = answer;
      const key = `${problem.id} ${text}`;
      calls.set(key, (calls.get(key) ?? 0) + 1);
      const isSlow = text === '' || (text === problem.question && calls.get(key) === 2);
      return isSlow ? new Promise<never>(() => {}) : right(answer);
    };
    const progress: [number, number][] = [];
    const { result, outcomes } = await testGrader(taskWith(grade), {
      timeoutMs: 40,
      onProgress: (done, of) => progress.push([done, of]),
    });
    // Twelve of each: empty ones took too long at once, echoes when they were graded again.
    const ofKind = (kind: string) => outcomes.filter((each) => each.case.kind === kind);
    const counts = (kind: string) => ofKind(kind).map(({ grades, isStable }) => [grades.length, isStable]);
    expect(counts('empty')).toEqual(Array(12).fill([1, true]));
    expect(counts('prompt-echo')).toEqual(Array(12).fill([2, false]));
    const graded = outcomes.reduce((sum, { grades }) => sum + grades.length, 0);
    expect(graded).toBe(3 * cases.length - 12 * 2 - 12);
    expect(progress[0]?.[1]).toBe(3 * cases.length);
    expect(progress.at(-1)).toEqual([graded, graded]);
    expect(progress.every(([done, of]) => done <= of)).toBe(true);
    // Neither the time that the slow ones took nor their calls are in what a call takes.
    const { alone, together } = result.speed;
    expect(alone.calls + together!.calls).toBe(graded - 24);
  });

  it('takes no grading for stuck that waits for others, as those in a sandbox do', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    let last: Promise<unknown> = Promise.resolve();
    const oneByOne: Grading = (answer) => {
      const graded = last.then(async () => {
        await new Promise((resolve) => setTimeout(resolve, 20_000));
        return right(answer);
      });
      last = graded;
      return graded;
    };
    const graded = testGrader(taskWith(oneByOne), { repeats: 2, timeoutMs: 30_000, concurrency: 16 });
    await vi.advanceTimersByTimeAsync(20_000 * 2 * cases.length);
    expect((await graded).result).toMatchObject({ outcome: 'pass', confusion: { failed: 0 }, findings: [] });
  });

  it('ends early where gradings take too long one after another', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    let calls = 0;
    const never: Grading = () => {
      calls += 1;
      return new Promise(() => {});
    };
    const tested = expect(testGrader(taskWith(never), { timeoutMs: 30_000 })).rejects.toMatchObject({
      code: 'grader_timeout',
    });
    await vi.advanceTimersByTimeAsync(90_000);
    await tested;
    expect(calls).toBe(3);
    const later: Grading = (answer) => (++calls > 100 ? never(answer) : right(answer));
    const options = { timeoutMs: 30_000, concurrency: 2, repeats: 20 };
    const stuck = expect(testGrader(taskWith(later), options)).rejects.toMatchObject({ code: 'grader_timeout' });
    await vi.advanceTimersByTimeAsync(90_000);
    await stuck;
  });

  it('keeps no completion in its result, and ends with the signal', async () => {
    const { result } = await testGrader(taskWith(({ text }) => given(text)));
    expect(JSON.stringify(result)).not.toContain('It is');
    const signal = AbortSignal.abort(new Error('enough'));
    await expect(testGrader(taskWith(right), { signal })).rejects.toMatchObject({ code: 'cancelled' });
  });
});
