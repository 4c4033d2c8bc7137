/**
 * Loads a server of the bundled model, in a process of its own: bursts, the round trip of the smallest operation, and a soak.
 *
 *   npm run load -- [--scale S] [--round-trips N] [--minutes M] [--only bursts,round-trip,soak]
 *
 * Ends with 1 when an operation is lost, doubled or fails, when a refusal is not 429 with Retry-After, or when memory grows over the soak.
 * The round trip is printed beside its goal and fails nothing: it says more of the machine than of the program.
 */
import { parseArgs } from 'node:util';
import { bursts } from './bursts.js';
import { type MeasuredServer, measuredServer } from './measured-server.js';
import { roundTrips } from './round-trip.js';
import { soak } from './soak.js';

/** What the service may add to the engine's time, at the median. */
const goalMs = 3;
/** From the first to the last third of a soak; less is the noise of the allocator. */
const flatShare = 1.15;
const flatBytes = 40 * 2 ** 20;

const { values } = parseArgs({
  options: {
    scale: { type: 'string', default: '1' },
    'round-trips': { type: 'string', default: '1000' },
    minutes: { type: 'string', default: '30' },
    only: { type: 'string', default: 'bursts,round-trip,soak' },
  },
});
const [scale, count, minutes] = [values.scale, values['round-trips'], values.minutes].map(Number) as [
  number,
  number,
  number,
]; // true: three of three
const parts = values.only.split(',');
if (![scale, count, minutes].every((value) => value > 0)) throw new Error('every number is above 0');

const mebi = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`;
const args = ['--max-sessions', '64', '--swap-after', '0'];

if (parts.includes('round-trip')) {
  await withServer(async (server) => {
    for (const trip of await roundTrips(server, count)) {
      const { how, count: all, medianMs, engineMedianMs, addedMedianMs, addedP90Ms, nothingMedianMs } = trip;
      console.log(
        `round trip (${how}, n ${all}): median ${medianMs.toFixed(1)} ms, engine ${engineMedianMs.toFixed(1)} ms, added ${addedMedianMs.toFixed(1)} ms (p90 ${addedP90Ms.toFixed(1)}), a request that does nothing ${nothingMedianMs.toFixed(1)} ms; goal ${goalMs}: ${addedMedianMs <= goalMs ? 'met' : 'not met'}`,
      );
    }
  });
}
if (parts.includes('bursts')) {
  await withServer(async (server) => {
    await bursts(server, scale, ({ name, operations, refusals, seconds, peakServerBytes, peakEngineBytes }) => {
      console.log(
        `${name}: ${operations} done, none lost or doubled, ${refusals} asked to come again, ${seconds.toFixed(1)} s; server ${mebi(peakServerBytes)}, engine ${mebi(peakEngineBytes)} at most`,
      );
    });
  });
}
if (parts.includes('soak')) {
  await withServer(async (server) => {
    const { minutes: took, operations, sessions, serverBytes, engineBytes } = await soak(server, minutes);
    console.log(
      `soak of ${took.toFixed(1)} min: ${operations} operations of ${sessions} sessions; by thirds, server ${serverBytes.map(mebi).join(', ')}, engine ${engineBytes.map(mebi).join(', ')}`,
    );
    for (const [who, [first = 0, , last = 0]] of [
      ['server', serverBytes],
      ['engine', engineBytes],
    ] as const) {
      if (last > Math.max(first * flatShare, first + flatBytes)) throw new Error(`the memory of the ${who} grows`);
    }
  });
}
process.exit();

async function withServer(work: (server: MeasuredServer) => Promise<void>): Promise<void> {
  await using server = await measuredServer(args);
  try {
    await work(server);
  } catch (error) {
    console.error(server.log());
    throw error;
  }
}
