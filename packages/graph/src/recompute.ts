/** What a backward pass computes again instead of keeping it: memory for time (Griewank & Walther, Evaluating Derivatives, ch. 12). */
import type { Graph } from './graph.js';

/**
 * Builds a part of a graph of which nothing but its inputs is kept for the backward pass: `gradients` repeats its nodes where it needs
 * what they made, once the gradients of its outputs are there, and hands on its own gradients all together, so that what was repeated
 * is done with before the backward pass goes on. The values are the same to the last bit; parts may lie in each other.
 *
 * @returns what `build` returns
 */
export function recompute<T>(graph: Graph, build: () => T): T {
  return graph.region(build);
}
