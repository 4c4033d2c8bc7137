/** The task: a point as JSON of a given shape. A tenth of the reward is for the shape, three tenths for each field that is right. */
import {
  createGrader,
  defineTask,
  type Environment,
  jsonFields,
  jsonSchema,
  type LabelledCompletion,
} from 'loopwright';
import { config } from './config.js';
import { heldOut, type Point, train } from './points.js';

const whole = { type: 'integer', minimum: 0 };
const schema = {
  type: 'object',
  properties: { x: whole, y: whole, z: whole },
  required: ['x', 'y', 'z'],
  additionalProperties: false,
};

export const environment: Environment<Point> = {
  name: 'json-extract',
  draw: (random) => random.pick(train),
  prompt: ({ question }, tokenizer) =>
    tokenizer.applyChatTemplate([{ role: 'user', content: question }], { addGenerationPrompt: true }),
  grade: createGrader({
    components: [
      jsonSchema({ schema, weight: 0.1 }),
      ...jsonFields<Point>({
        fields: { x: '/x', y: '/y', z: '/z' },
        expected: ({ x, y, z }) => ({ x, y, z }),
        weight: 0.9,
      }),
    ],
  }),
};

const { groupsPerStep, groupSize, maxTokens, steps, learningRate } = config;

export const task = defineTask({
  name: 'json-extract',
  environment,
  ...{ train, heldOut },
  cases: heldOut.slice(0, 4).flatMap(labelled),
  settings: { groupsPerStep, groupSize, maxTokens, steps, learningRate },
});

/** What people say of answers, in the ways in which models write them. */
function labelled(problem: Point): LabelledCompletion<Point>[] {
  const { x, y, z, answer } = problem;
  const good = {
    bare: answer,
    'with blanks': JSON.stringify({ x, y, z }, undefined, 2),
    'other order of keys': JSON.stringify({ z, x, y }),
  };
  const bad = {
    'number as text': JSON.stringify({ x, y: String(y), z }),
    'no z': JSON.stringify({ x, y }),
    'one more': JSON.stringify({ x, y, z: z + 1 }),
    'a key too many': JSON.stringify({ x, y, z, w: 0 }),
    'keys without quotes': answer.replace(/"(\w+)":/g, '$1:'),
    'text behind it': `${answer} is the point.`,
  };
  return [
    ...Object.entries(good).map(([kind, completion]) => ({ problem, label: 'good' as const, completion, kind })),
    ...Object.entries(bad).map(([kind, completion]) => ({ problem, label: 'bad' as const, completion, kind })),
  ];
}
