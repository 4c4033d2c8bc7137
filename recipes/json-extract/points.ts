/** Points such as `x 3 y 7 z 1`, and what is to be read from them. */
import { createRandom, type Problem, type Random } from 'loopwright';
import { config } from './config.js';

export interface Point extends Problem {
  readonly x: number;
  readonly y: number;
  readonly z: number;
}

const digits = Array.from({ length: 10 }, (_, i) => i);

/** Every point there is, shuffled, so that a few are a fair sample. */
const points = createRandom(1).shuffle(
  digits.flatMap((x) => digits.flatMap((y) => digits.map((z) => pointOf({ x, y, z })))),
);

function pointOf({ x, y, z }: { readonly x: number; readonly y: number; readonly z: number }): Point {
  const question = `x ${x} y ${y} z ${z}`;
  return { id: question, question, answer: JSON.stringify({ x, y, z }), x, y, z };
}

export const heldOut: readonly Point[] = points.slice(0, config.heldOut);
export const train: readonly Point[] = points.slice(config.heldOut);

/** What a careless clerk makes of a point: often `y` as a text, now and then no `z`. */
export function careless({ x, y, z }: Point, random: Random): string {
  const { yAsText, noZ } = config.warmUp;
  const written = random.next() < yAsText ? String(y) : y;
  return JSON.stringify(random.next() < noZ ? { x, y: written } : { x, y: written, z });
}
