/**
 * The game: a number of a range is to be found in four guesses, and a wrong guess is told `higher` or `lower`. The world settles on a number as late as it can:
 * the larger part of what a guess leaves is left. So luck decides nothing, and halving always wins.
 */
import { type ChatMessage, createRandom, type EpisodeEnvironment, type Problem, type Random } from 'loopwright';
import { config } from './config.js';

export interface Range {
  readonly low: number;
  readonly high: number;
}

/** A range of two-digit numbers; its answer is the middle, the guess to begin with. */
export interface Game extends Problem, Range {}

const { widths, maxTurns } = config;

const games = createRandom(0).shuffle(
  widths.flatMap((width) =>
    Array.from({ length: 91 - width }, (_, i): Game => {
      const range = { low: 10 + i, high: 10 + i + width - 1 };
      const question = rangeText(range);
      return { id: question, question, answer: String(middleOf(range)), ...range };
    }),
  ),
);

/** Ranges that no game of training begins with. */
export const heldOut: readonly Game[] = games.slice(0, config.heldOut);
export const train: readonly Game[] = games.slice(config.heldOut);

export const guessNumber: EpisodeEnvironment<Game> = {
  name: 'guess-number',
  draw: (random) => random.pick(train),
  begin(game) {
    let left: Range = game;
    /** The share of the range's numbers that is ruled out. */
    const share = (): number => 1 - widthOf(left) / widthOf(game);
    return {
      messages: [{ role: 'user', content: game.question }],
      respond({ index, text }) {
        const guess = /^\d{1,2}$/.test(text.trim()) ? Number(text) : undefined;
        if (guess === undefined) return { grade: { status: 'unparsed', reward: 0 } };
        if (isFound(guess, left)) return { grade: { status: 'ok', reward: 1 } };
        const hint = hintOf(guess, left);
        left = leftAfter(guess, left);
        if (index + 1 === maxTurns) return { grade: { status: 'ok', reward: share() } };
        return { messages: [{ role: 'user', content: `${hint} ${rangeText(left)}` }] };
      },
    };
  },
};

export function middleOf({ low, high }: Range): number {
  return Math.floor((low + high) / 2);
}

function widthOf({ low, high }: Range): number {
  return high - low + 1;
}

function rangeText({ low, high }: Range): string {
  return `${low}-${high}`;
}

/** Only the last number that is left is the one. */
function isFound(guess: number, { low, high }: Range): boolean {
  return low === high && guess === low;
}

/** Where the larger part of what a guess leaves lies; of two equal ones the upper. */
function hintOf(guess: number, { low, high }: Range): 'higher' | 'lower' {
  return guess - low > high - guess ? 'lower' : 'higher';
}

/** What is left after a guess: all of it where the guess lies outside. */
function leftAfter(guess: number, { low, high }: Range): Range {
  if (guess < low || guess > high) return { low, high };
  return hintOf(guess, { low, high }) === 'lower' ? { low, high: guess - 1 } : { low: guess + 1, high };
}

/** A game as it is played by someone who knows the rules and nothing else: each guess is any number that is still possible. */
export function randomPlay(game: Game, random: Random): ChatMessage[] {
  const messages: ChatMessage[] = [{ role: 'user', content: game.question }];
  let left: Range = game;
  for (let turn = 1; turn <= maxTurns; turn++) {
    const guess = left.low + random.integer(widthOf(left));
    messages.push({ role: 'assistant', content: String(guess) });
    if (isFound(guess, left) || turn === maxTurns) break;
    const hint = hintOf(guess, left);
    left = leftAfter(guess, left);
    messages.push({ role: 'user', content: `${hint} ${rangeText(left)}` });
  }
  return messages;
}
