/** Runs whose numbers were written down before the loop could overlap: without overlap they stay what they were, bit for bit. */
import type { Environment, Problem } from '../environments/environment.js';
import type { EpisodeEnvironment, Reply } from '../episodes/environment.js';
import { runGrpo } from '../training/grpo.js';
import type { Metrics } from '../training/grpo-metrics.js';
import type { CommonGrpoOptions } from '../training/grpo-options.js';
import { Bandit, characterTokenizer, copyEnvironment, copyProblem } from './bandit.js';

export interface Trajectory {
  readonly metrics: readonly Metrics[];
  readonly weights: readonly (readonly number[])[];
}

const small = { groupsPerStep: 4, samplesPerGroup: 8, maxTokens: 1, steps: 6, seed: 3, now: () => 0 };

/** Of four problems two never teach, so that groups are refilled. */
const halfDead: Environment = {
  ...copyEnvironment,
  grade: (answer) =>
    Number(answer.problem.answer) % 2 === 0 ? copyEnvironment.grade(answer) : { status: 'ok', reward: 0 },
};

/** Can't judge one digit. */
const flaky: Environment = {
  ...copyEnvironment,
  grade: (answer) => {
    if (answer.text === '7') throw new Error('grader broke');
    return copyEnvironment.grade(answer);
  },
};

const tokenizer = characterTokenizer('{% for m in messages %}{{ m.content }}{% endfor %}');

/** Whoever is wrong is asked once more. */
const secondTry: EpisodeEnvironment<Problem> = {
  name: 'second-try',
  draw: (random) => copyProblem(random.integer(4)),
  begin: ({ question, answer }) => ({
    messages: [{ role: 'user', content: question }],
    respond: ({ index, text }): Reply => {
      if (text === answer) return { grade: { status: 'ok', reward: index === 0 ? 1 : 0.5 } };
      return index === 1 ? { grade: { status: 'ok', reward: 0 } } : { messages: [{ role: 'user', content: '?' }] };
    },
  }),
};

/** Only the first two problems, after a wrong answer with no second turn, teach. */
const halfDeadEpisodes: EpisodeEnvironment<Problem> = {
  ...secondTry,
  begin: (problem, context) =>
    Number(problem.answer) < 2
      ? secondTry.begin(problem, context)
      : {
          messages: [{ role: 'user', content: problem.question }],
          respond: () => ({ grade: { status: 'ok', reward: 0 } }),
        },
};

type Extra = Partial<Omit<CommonGrpoOptions, 'training' | 'reference'>>;

function answers(environment: Environment, extra: Extra & { reference?: object } = {}) {
  return async (more: Extra): Promise<Trajectory> => {
    const training = new Bandit();
    const { reference, ...rest } = extra;
    const options = { ...small, ...rest, ...more, training, environment };
    const scored = reference === undefined ? {} : { reference: { scorer: training.snapshot(), ...reference } };
    const { metrics } = await runGrpo({ ...options, ...scored });
    return { metrics, weights: training.weights };
  };
}

function episodes(environment: EpisodeEnvironment<Problem>, extra: Extra = {}) {
  return async (more: Extra): Promise<Trajectory> => {
    const training = new Bandit();
    const { metrics } = await runGrpo({ ...small, ...extra, ...more, training, environment, tokenizer });
    return { metrics, weights: training.weights };
  };
}

/** By name; more options may be given to each. */
export const trajectories: Readonly<Record<string, (more: Extra) => Promise<Trajectory>>> = {
  answers: answers(copyEnvironment),
  'answers, refilled': answers(halfDead, { refillRounds: 2 }),
  'answers, near to a reference by reward': answers(copyEnvironment, { reference: { klCoefficient: 0.1 } }),
  'answers, near to a reference by loss': answers(copyEnvironment, {
    reference: { klCoefficient: 0.1, placement: 'loss' },
    learningRate: 2e-5,
    lengthNormalization: 'batch',
  }),
  'answers, measured now and then': answers(copyEnvironment, { reference: { everySteps: 2 }, loss: 'cispo' }),
  'answers, some not graded': answers(flaky, { onGraderError: { floor: -1 }, overlong: { penalizeLast: 1 } }),
  episodes: episodes(secondTry),
  'episodes, refilled': episodes(halfDeadEpisodes, { refillRounds: 2 }),
};
