import { connect, rendererFor } from 'loopwright';

await using service = await connect();
const training = await service.createLoraTrainingClient({ baseModel: 'loopwright-tiny', rank: 8, seed: 1 });
const sampler = await training.saveWeightsAndGetSamplingClient();
const renderer = rendererFor(await training.getTokenizer());

// A prompt in tokens, an answer, and the answer as a message.
const chat = [{ role: 'user', content: '12+7=' }];
const prompt = renderer.render(chat, { addGenerationPrompt: true });
const { sequences } = await sampler.sample(prompt.tokens, {
  maxTokens: 8,
  temperature: 0,
  stopTokenIds: renderer.stopTokenIds,
});
const drawn = sequences[0]!.tokens;
const { message, status } = renderer.parse(drawn, { thinkingOpen: prompt.thinkingOpen });
console.log(`${status}: ${message.content}`);

// The chat goes on. What was drawn stands in it as it was drawn, and is what the mask names.
const longer = [...chat, message, { role: 'user', content: 'And 8?' }];
const { tokens, turns, producedMask, text } = renderer.render(longer, { drawn: new Map([[1, drawn]]) });
console.log(text);
console.log(`turn ${turns[0]!.start}-${turns[0]!.end} of ${tokens.length} tokens, as drawn: ${turns[0]!.asDrawn}`);
console.log(`trained: ${producedMask.filter(Boolean).length}, breaks: ${renderer.prefixBreaks(longer).length}`);
