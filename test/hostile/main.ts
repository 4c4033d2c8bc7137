/**
 * Attacks a server with requests that no client would send, until so many have been answered as they should.
 *
 *   npm run hostile -- [--runs N] [--seed S]
 *
 * What breaks the server is printed in its smallest form, with the seed that repeats it.
 */
import { parseArgs } from 'node:util';
import { campaign } from './fuzz.js';

const { values } = parseArgs({
  options: { runs: { type: 'string', default: '2000' }, seed: { type: 'string', default: '1' } },
});
const [runs, seed] = [Number(values.runs), Number(values.seed)];
if (!(Number.isSafeInteger(runs) && runs > 0 && Number.isSafeInteger(seed))) {
  throw new Error('--runs is a whole number above 0, --seed a whole number');
}
const started = performance.now();
const { statuses, peakBytes } = await campaign({ runs, seed });
console.log(`${runs} attacks, seed ${seed}, ${((performance.now() - started) / 1000).toFixed(0)} s: no fault, no hang`);
console.log(`memory of the server at most ${Math.round(peakBytes / 2 ** 20)} MiB`);
for (const [status, count] of statuses) console.log(`  ${status}: ${count}`);
