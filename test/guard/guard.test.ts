/** Each fault is put into a real run of the bundled model and raises its alarm, and no other above a note. */
import { join } from 'node:path';
import { temporaryDirectory } from '@loopwright/testkit';
import { type Alarm, type ArithmeticProblem, connect, type Environment, type Sampler } from 'loopwright';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  endTraining,
  grpoAlarms,
  handLoop,
  type Service,
  startTraining,
  sums,
  type Training,
  trainerWith,
} from './bench.js';

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
let service: Service;
let training: Training;

beforeAll(async () => {
  folder = await temporaryDirectory();
  service = await connect({ dataDir: join(folder.path, 'data') });
});
afterEach(endTraining);
afterAll(async () => {
  await service.close();
  await folder[Symbol.asyncDispose]();
});

/** Names above a note, each once. */
function grave(alarms: readonly Alarm[]): string[] {
  return [...new Set(alarms.filter(({ level }) => level !== 'note').map(({ name }) => name))];
}

function grading(grade: Environment<ArithmeticProblem>['grade']): Environment<ArithmeticProblem> {
  return { ...sums, grade };
}

test('a run without a fault raises none', async () => {
  const { alarms, error } = await grpoAlarms(await startTraining(service));
  expect(error).toBeUndefined();
  expect(grave(alarms)).toEqual([]);
});

test('a loop written by hand raises none either', async () => {
  expect(grave(await handLoop({ training: await startTraining(service), steps: 3 }))).toEqual([]);
});

describe('sampler and trainer', () => {
  test('logprobs of another temperature: guard/ratio, with the worst token', async () => {
    training = await startTraining(service);
    const scaled = async () => {
      const sampler = await training.saveWeightsAndGetSamplingClient();
      const sample: Sampler['sample'] = async (...call) => {
        const { sequences } = await sampler.sample(...call);
        return { sequences: sequences.map((each) => ({ ...each, logprobs: each.logprobs.map((lp) => lp * 1.1) })) };
      };
      return { sample };
    };
    const alarms = await handLoop({ training, steps: 2, samplerOf: scaled });
    expect(grave(alarms)).toEqual(['guard/ratio']);
    expect(alarms[0]).toMatchObject({
      where: expect.stringMatching(/^worst: datum \d+, position \d+, token id \d+: /),
    });
  });

  test('sampling at temperature 0.7: a note with its size', async () => {
    const { alarms } = await grpoAlarms(await startTraining(service), { temperature: 0.7, steps: 2 });
    expect(grave(alarms)).toEqual([]);
    expect(alarms.filter(({ name }) => name === 'guard/sampling-policy')).toMatchObject([
      { level: 'note', seen: expect.stringMatching(/^temperature 0\.7: .* is 0\.\d+ nats a token/) },
    ]);
  });

  test('a sampler that is refreshed every other step: guard/stale-sampler', async () => {
    training = await startTraining(service);
    let last: Awaited<ReturnType<Training['saveWeightsAndGetSamplingClient']>> | undefined;
    const samplerOf = async (step: number) => {
      if (last === undefined || step % 2 === 0) last = await training.saveWeightsAndGetSamplingClient();
      return last;
    };
    expect(grave(await handLoop({ training, steps: 4, samplerOf }))).toEqual(['guard/stale-sampler']);
  });

  test('one sampler for the whole run: guard/sampler-never-refreshed', async () => {
    training = await startTraining(service);
    const first = await training.saveWeightsAndGetSamplingClient();
    const cached = trainerWith(training, { saveWeightsAndGetSamplingClient: async () => first });
    const { alarms } = await grpoAlarms(cached, { steps: 3 });
    expect(grave(alarms)).toEqual(['guard/sampler-never-refreshed']);
  });
});

describe('answers and graders', () => {
  test('maxTokens 1: guard/all-truncated', async () => {
    const { alarms } = await grpoAlarms(await startTraining(service), { maxTokens: 1, steps: 3 });
    expect(grave(alarms)).toEqual(['guard/all-truncated']);
  });

  test('a grader that looks for another format: guard/all-unparsed', async () => {
    const environment = grading(() => ({ status: 'unparsed', reward: 0 }));
    const { alarms } = await grpoAlarms(await startTraining(service), { environment, steps: 3 });
    expect(grave(alarms)).toEqual(['guard/all-unparsed']);
  });

  test('a grader that throws for every tenth answer: guard/grader-failing', async () => {
    let n = 0;
    const environment = grading((answer, context) => {
      if (n++ % 10 === 0) throw new Error('boom');
      return sums.grade(answer, context);
    });
    const { alarms } = await grpoAlarms(await startTraining(service), { environment, steps: 3 });
    expect(grave(alarms)).toEqual(['guard/grader-failing']);
  });

  test('a grader that always throws: the alarm at level stop, and the end of the run', async () => {
    const environment = grading(() => {
      throw new Error('boom');
    });
    const { alarms, error } = await grpoAlarms(await startTraining(service), { environment });
    expect(alarms).toMatchObject([{ name: 'guard/grader-failing', level: 'stop' }]);
    expect(error).toMatchObject({ code: 'grader_failed' });
  });

  test('a grader that always says 0.5: guard/grader-constant', async () => {
    const environment = grading(() => ({ status: 'ok', reward: 0.5 }));
    const { alarms } = await grpoAlarms(await startTraining(service), { environment });
    expect(grave(alarms)).toEqual(['guard/grader-constant']);
  });

  test('a grader that judges the problem, not the answer: guard/dead-batch', async () => {
    const environment = grading(({ problem }) => ({ status: 'ok', reward: problem.a % 2 }));
    const { alarms } = await grpoAlarms(await startTraining(service), { environment });
    expect(grave(alarms)).toEqual(['guard/dead-batch']);
  });
});

describe('the gradient', () => {
  test('advantages of 0: guard/gradient-zero', async () => {
    const advantages = (rewards: readonly (readonly number[])[]) => rewards.map((row) => row.map(() => 0));
    const { alarms } = await grpoAlarms(await startTraining(service), { advantages, steps: 3 });
    expect(grave(alarms)).toEqual(['guard/gradient-zero']);
  });

  test('rewards a thousand times as high from one step on: guard/gradient-exploding', async () => {
    let calls = 0;
    const advantages = (rewards: readonly (readonly number[])[]) => {
      calls += 1;
      return rewards.map((row) => row.map((each, i) => (each - 0.5 + (i % 2) * 0.1) * (calls > 6 ? 1000 : 1)));
    };
    const { alarms } = await grpoAlarms(await startTraining(service), { advantages, steps: 8 });
    expect(grave(alarms)).toEqual(['guard/gradient-exploding']);
  });

  test('advantages that overflow: guard/gradient-not-finite ends the run', async () => {
    const advantages = (rewards: readonly (readonly number[])[]) =>
      rewards.map((row) => row.map((_, i) => (i % 2 === 0 ? 3e38 : -3e38)));
    const { alarms, error } = await grpoAlarms(await startTraining(service), { advantages });
    expect(grave(alarms)).toEqual(['guard/gradient-not-finite']);
    expect(error).toMatchObject({
      code: 'guard_stopped',
      details: { alarm: 'guard/gradient-not-finite', page: 'docs/guides/guard/gradient-not-finite.md' },
    });
  });
});
