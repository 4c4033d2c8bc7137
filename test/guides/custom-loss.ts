import { completionLogprob, connect, preferenceData, stack, valueAndGrad, type WeightedDatum } from 'loopwright';

/** Each chosen answer is to be likelier than its rejected one by a factor of e^margin. */
function ranking(margin: number) {
  return valueAndGrad(function ranking(logprobs, data: readonly WeightedDatum[]) {
    const answers = logprobs.map((lp, i) => completionLogprob(lp, data[i]!));
    const gaps = stack(answers.flatMap((answer, i) => (i % 2 === 0 ? [answer.sub(answers[i + 1]!)] : [])));
    return {
      loss: gaps.neg().add(margin).max(0).sum(),
      metrics: { 'gap/mean': gaps.mean().value },
    };
  });
}

await using service = await connect();
const training = await service.createLoraTrainingClient({ baseModel: 'loopwright-tiny', rank: 8, seed: 1 });
const tokenizer = await training.getTokenizer();
const data = preferenceData(
  [
    ['27+58=', '85', '75'],
    ['41-19=', '22', '32'],
  ].map((texts) => {
    const [prompt, chosen, rejected] = texts.map((text) => tokenizer.encode(text));
    return { prompt: prompt!, chosen: chosen!, rejected: rejected! };
  }),
);

for (let step = 1; step <= 5; step++) {
  const pass = training.forwardBackwardCustom(data, ranking(8));
  const update = training.optimStep({ learningRate: 1e-3 }); // queued behind it
  const { loss, metrics } = await pass;
  await update;
  console.log(`step ${step}: loss ${loss.toFixed(3)}, gap ${metrics['gap/mean']!.toFixed(3)}`);
}
