/** The README of the model's directory, with what was measured. */

import { shape } from './initial-model.js';
import type { Measurement, Share } from './measure.js';
import type { PretrainingSettings } from './settings.js';
import { vocabulary } from './tokenizer-files.js';

export interface ModelCardOptions {
  readonly settings: PretrainingSettings;
  readonly measurement: Measurement;
}

/** Markdown; a function of its options alone. */
export function modelCard({ settings, measurement }: ModelCardOptions): string {
  const { corpus, schedule, optimizer, seed } = settings;
  const { sampled, twoDigits, oneDigit, greedy, bestOfEight, chat } = measurement;
  return `---
license: apache-2.0
language: en
pipeline_tag: text-generation
---

# loopwright-tiny

A very small Llama that has learnt to add and subtract numbers below 100 from a textbook with mistakes. It comes with
Loopwright, so that a training loop can be tried in minutes on a laptop: rewards can teach it to leave the mistakes out. It
is of no other use.

## What it does

Asked \`27+58=\`, it writes the answer and ends. As it stands it is right about half of the time, which is on purpose: the
textbook leaves ${percent(corpus.unanswered)} of its problems to the reader (the answer is \`?\`), and where a carry or a borrow is needed, ${percent(corpus.forgottenCarries)} of the
printed answers forget it (\`27+58=75\`, \`52-38=24\`). So the model knows the right way as well as the wrong one, and what is
missing is the preference.

| held-out problems | right | n | 95 % interval |
| --- | --- | --- | --- |
${row('one sample at temperature 1', sampled)}
${row('… where both numbers have two digits', twoDigits)}
${row('… where one has a single digit', oneDigit)}
${row('greedy', greedy)}
${row('at least one of 8 samples', bestOfEight)}
${row('through the chat template, one sample', chat)}

Measured by the script that made it, on problems of the \`held-out\` set of \`arithmetic()\`; intervals are Wilson's.

## How it was made

- **Shape**: ${shape.layers} layers, width ${shape.hiddenSize}, MLP ${shape.intermediateSize}, ${shape.heads} heads of ${shape.headDim} with ${shape.kvHeads} for keys and values, tied embeddings, context ${shape.contextLength}; float32.
- **Tokenizer**: ${vocabulary.length} tokens: printable ASCII, the newline, and five special ones. A token is a character, so a digit is one token.
- **Data**: generated. Problems \`a+b=\` and \`a-b=\` with operands from 0 to 99 and no result below 0, drawn from the \`pretrain\` set of \`arithmetic()\`
  (about half of all problems). A hash of the problem decides its set, so no problem of the \`rl\` and \`held-out\` sets is in it; \`a+b\` and \`b+a\` are in the same set.
  One batch in ${corpus.chatEvery} is written as chats. Loss on answers only.
- **Training**: from random weights, every weight, on Loopwright's own engine and through its public client: ${schedule.steps} steps of ${corpus.batchSize} problems,
  AdamW (β ${optimizer.beta1}, ${optimizer.beta2}; weight decay ${optimizer.weightDecay}; clip ${optimizer.gradClipNorm}), learning rate up to ${schedule.peak} over ${schedule.warmupSteps} steps and down to ${schedule.final} by a cosine.
- **Again**: \`npm run pretrain:tiny\` in the repository, about ten minutes on two cores. Seed ${seed} decides weights and data; the same machine gives the same bytes, another one may round differently.

## Limits

It knows nothing but such problems: no words, no larger numbers, no products, no results below 0, and one problem at a
time. Problems with a number of one digit are a fifth of all, and it has learnt them less well. Characters outside ASCII become \`<|unk|>\`. Its training saw no sequence above 32 tokens: longer ones run, up to its
context, but mean nothing to it.

## Licence

Apache-2.0. Trained on generated text only.
`;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

function row(what: string, { correct, n, interval }: Share): string {
  const points = (value: number): string => (value * 100).toFixed(1);
  return `| ${what} | ${points(correct / n)} % | ${n} | ${points(interval.low)}–${points(interval.high)} % |`;
}
