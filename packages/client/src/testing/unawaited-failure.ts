/** Run in a process of its own: a queued pass fails and is not awaited while a step is; the process must live to tell it. */
import { LoopwrightError } from '@loopwright/protocol';
import { datum, setUpTraining } from './setup.js';

const { server, training } = await setUpTraining();
server.onTraining = ({ operation }) => {
  if (operation.type === 'forward') return new LoopwrightError({ code: 'out_of_memory', message: 'no room' });
  return operation.type === 'optim-step' ? 'hold' : undefined;
};
const step = training.optimStep();
void training.forward([datum()], 'cross_entropy');
setTimeout(() => server.finish(), 300); // long after the pass has failed
await step.catch(() => undefined);
console.log('step awaited');

void training.forward([datum()], 'cross_entropy');
await training.close().catch((error: unknown) => {
  console.log(`told at close: ${LoopwrightError.isInstance(error) ? error.code : 'another error'}`);
});
