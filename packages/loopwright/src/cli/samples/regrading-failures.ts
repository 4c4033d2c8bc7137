/** Answers that could not be graded again: told apart from those that changed, with the first cause. */
import { escapeText, truncateText } from '@loopwright/loops';
import type { RegradingFailure } from '@loopwright/loops/node';
import { failureText } from '../failure-text.js';

export class RegradingFailures {
  readonly #counts = new Map<string, number>();
  #first: RegradingFailure | undefined;

  add(failure: RegradingFailure): void {
    this.#counts.set(failure.status, (this.#counts.get(failure.status) ?? 0) + 1);
    this.#first ??= failure;
  }

  /** None where nothing failed. */
  lines(): string[] {
    if (this.#first === undefined) return [];
    const { sample, error } = this.#first;
    const all = [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
    const kinds = [...this.#counts].map(([status, count]) => `${escapeText(status)} ${count}`).join(', ');
    const at = `answer ${sample.member} to ${truncateText(escapeText(sample.problem), 24)} of step ${sample.step}`;
    return [`${all} more could not be graded (${kinds}). The first, ${at}: ${failureText(error)}`];
  }
}
