/** Samples of a report: the same problems at several steps beside each other, the remarkable ones of the last step, and who signed them off. */
import type { RunSample, SignOff } from '@loopwright/loops/node';
import { numberText } from '../runs/text.js';
import { type ComparedProblem, questionOf } from '../samples/compared-samples.js';
import { componentText, textOf } from '../samples/samples-text.js';
import { signOffText } from '../samples/sign-off-text.js';
import { html } from './html.js';

/** What of a run is shown besides its numbers. */
export interface ShownSamples {
  readonly problems: readonly ComparedProblem[];
  /** The best, worst and longest of the last step. */
  readonly marked: readonly RunSample[];
  readonly signOffs: readonly SignOff[];
}

export function samplesSection({ problems, marked, signOffs }: ShownSamples): string {
  if (problems.length === 0 && marked.length === 0) return '<p>The run kept no samples.</p>';
  const said = signOffs.map((each) => `<p>Signed off by ${html(signOffText(each))}</p>`);
  const compared = problems.map(({ question, samples }) => article(question, samples));
  const extremes = marked.map((sample) => article(questionOf(sample), [sample]));
  return [
    ...(said.length === 0 ? ['<p>Nobody has signed them off.</p>'] : said),
    ...compared,
    ...(extremes.length === 0 ? [] : [`<h3>Best, worst and longest of step ${marked[0]?.step}</h3>`, ...extremes]),
  ].join('\n');
}

function article(question: string, samples: readonly RunSample[]): string {
  return `<article><pre class="question">${html(question)}</pre><div class="samples">${samples.map(card).join('')}</div></article>`;
}

function card(sample: RunSample): string {
  const { step, type, status, reward, components = [], marks } = sample;
  const worth = reward === undefined ? status : `reward ${numberText(reward)}`;
  const parts = components.length === 0 ? '' : `<p>${html(components.map(componentText).join(', '))}</p>`;
  const origin =
    marks === undefined || type !== 'train' ? `step ${step}, ${type}` : `step ${step}, ${marks.join(', ')}`;
  return `<div class="sample"><p>${html(origin)} <span class="${(reward ?? 0) > 0 ? 'good' : 'bad'}">${html(worth)}</span></p>${parts}<pre>${html(textOf(sample))}</pre>${tokensText(sample)}</div>`;
}

/** Tokens of an answer that are listed; the rest is in the run's own files. */
const listed = 1000;

/** Ids and logprobs, folded away. */
function tokensText({ segments }: RunSample): string {
  const tokens = segments.flatMap((segment) =>
    segment.tokens.map((id, i) => `${id}:${(segment.logprobs[i] ?? Number.NaN).toFixed(3)}`),
  );
  const prompts = segments.reduce((sum, { prompt }) => sum + prompt.length, 0);
  const first = segments[0]?.prompt ?? [];
  const shown = [
    ...(first.length === 0 ? [] : [`prompt ${first.slice(0, listed).join(' ')}`]),
    `answer ${tokens.slice(0, listed).join(' ')}${tokens.length > listed ? ' …' : ''}`,
  ];
  return `<details><summary>${prompts} + ${tokens.length} tokens</summary><pre>${html(shown.join('\n'))}</pre></details>`;
}
