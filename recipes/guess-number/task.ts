/** The task of several turns, for the commands. */
import { defineTask, type LabelledCompletion } from 'loopwright';
import { config } from './config.js';
import { type Game, guessNumber, heldOut, train } from './environment.js';

const { groupsPerStep, groupSize, maxTokens, maxTurns, steps, learningRate } = config;

export const task = defineTask({
  name: 'guess-number',
  environment: guessNumber,
  ...{ train, heldOut },
  cases: heldOut
    .filter(({ low, high }) => high - low === 6)
    .slice(0, 10)
    .flatMap(labelled),
  settings: { groupsPerStep, groupSize, maxTokens, maxTurns, steps, learningRate },
});

/** What people say of games of seven numbers. The upper part is left after a guess in the middle, so halving ends at the highest. */
function labelled(problem: Game): LabelledCompletion<Game>[] {
  const { low, high } = problem;
  const good = {
    halving: [low + 3, high - 1, high],
    'halving after a guess that rules little out': [low, low + 3, high - 1, high],
  };
  const bad = {
    'the middle again and again': Array(4).fill(low + 3),
    'from below': [low, low + 1, low + 2, low + 3],
    'from above': [high, high - 1, high - 2, high - 3],
    'the part that is not left': [low + 3, low + 1, low, low],
    'outside the range': Array(4).fill(high + 1),
    'in words': [low + 3, high - 1, `It is ${high}.`],
  };
  const turns = (guesses: readonly (number | string)[]) => guesses.map((guess) => ({ text: String(guess) }));
  return [
    ...Object.entries(good).map(([kind, all]) => ({ problem, label: 'good' as const, completion: turns(all), kind })),
    ...Object.entries(bad).map(([kind, all]) => ({ problem, label: 'bad' as const, completion: turns(all), kind })),
  ];
}
