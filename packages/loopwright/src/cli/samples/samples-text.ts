/** Samples for people: what each is worth, of which components, and what was written. */
import { escapeText } from '@loopwright/loops';
import type { RunSample } from '@loopwright/loops/node';
import type { Console } from '../console.js';
import { numberText } from '../runs/text.js';
import type { ComparedProblem } from './compared-samples.js';
import { questionOf } from './compared-samples.js';
import { firstLines, sideBySide, wrapped } from './side-by-side.js';

/** How much of a text is shown. */
export interface ShownSize {
  /** Of the terminal, in columns. */
  readonly width: number;
  /** Lines of a text at most. */
  readonly lines: number;
}

/** What of it was shown in part. */
export interface Shortened {
  readonly answers: number;
  readonly questions: number;
}

/** Each problem with its answers beside each other. */
export function showCompared(problems: readonly ComparedProblem[], console: Console, size: ShownSize): Shortened {
  return showAll(problems, console, size);
}

/** The best, the worst and the longest of a step, each with its problem. */
export function showMarked(samples: readonly RunSample[], console: Console, size: ShownSize): Shortened {
  return showAll(
    samples.map((sample) => ({
      question: `${sample.marks?.join(', ') ?? ''}: ${questionOf(sample)}`,
      samples: [sample],
    })),
    console,
    size,
  );
}

interface ShownProblem {
  readonly question: string;
  readonly samples: readonly RunSample[];
}

function showAll(problems: readonly ShownProblem[], console: Console, size: ShownSize): Shortened {
  let [answers, questions] = [0, 0];
  for (const { question, samples } of problems) {
    console.line();
    const { texts, isShortened } = firstLines(question, size);
    for (const line of texts) console.line(console.paint.bold(line));
    const cells = samples.map((sample) => ({ head: headOf(sample), text: textOf(sample) }));
    const { lines, shortened } = sideBySide(cells, { ...size, paintHead: console.paint.dim });
    for (const line of lines) console.line(line);
    answers += shortened;
    questions += isShortened ? 1 : 0;
  }
  return { answers, questions };
}

/** Ids and logprobs of each answer, a token each. */
export function showTokens(samples: readonly RunSample[], console: Console, { width }: ShownSize): void {
  for (const sample of samples) {
    console.line();
    console.line(
      console.paint.bold(`${escapeText(sample.problem)}, step ${sample.step}, answer ${sample.member}: id:logprob`),
    );
    for (const { prompt, tokens, logprobs, stop } of sample.segments) {
      for (const line of wrapped(`prompt ${prompt.join(' ')}`, width)) console.line(line);
      const pairs = tokens.map((id, i) => `${id}:${(logprobs[i] ?? Number.NaN).toFixed(3)}`);
      for (const line of wrapped(`answer ${pairs.join(' ')} (${escapeText(stop)})`, width)) console.line(line);
    }
  }
}

/** `step 15, reward 1: format 1, answer 0`, and below it `12 tokens, logprob -0.31 each`. */
function headOf(sample: RunSample): string {
  const { step, status, reward, components = [], segments } = sample;
  const worth = reward === undefined ? escapeText(status) : `reward ${numberText(reward)}`;
  const said = reward !== undefined && status !== 'ok' && status !== 'done' ? ` (${escapeText(status)})` : '';
  const parts = components.map(componentText);
  const logprobs = segments.flatMap((segment) => segment.logprobs);
  const sum = logprobs.reduce((total, value) => total + value, 0);
  const each = logprobs.length === 0 ? '' : `, logprob ${(sum / logprobs.length).toFixed(2)} each`;
  const turns = segments.length > 1 ? `${segments.length} turns, ` : '';
  return [
    `step ${step}, ${worth}${said}${parts.length === 0 ? '' : `: ${parts.join(', ')}`}`,
    `${turns}${logprobs.length} tokens${each}`,
  ].join('\n');
}

export function componentText({ name, status, score }: NonNullable<RunSample['components']>[number]): string {
  const value = score === undefined ? escapeText(status) : numberText(score);
  return `${escapeText(name)} ${value}`;
}

/** Of an episode, its turns one after another. */
export function textOf({ segments }: RunSample): string {
  return segments.map(({ text }) => text).join('\n⋯\n');
}
