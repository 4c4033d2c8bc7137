/**
 * Kills servers and engines at random durable writes and random moments until so many kills are done, and compares every run with one
 * that nobody disturbed.
 *
 *   npm run crash -- [--kills N] [--seed S]
 *
 * One line per run. The first run that differs ends it with 1; its seed is printed and its folder stays. Ctrl-C ends it with what there is.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { makeTinyModel } from '../support/tiny-model.js';
import { drawKills, type Fired, readPoints, seededRandom } from './plans.js';
import { type Outcome, runWith } from './workload.js';

const { values } = parseArgs({
  options: { kills: { type: 'string', default: '20' }, seed: { type: 'string', default: '1' } },
});
const [wanted, firstSeed] = [Number(values.kills), Number(values.seed)];
if (!(Number.isSafeInteger(wanted) && wanted > 0 && Number.isSafeInteger(firstSeed))) {
  throw new Error('--kills is a whole number above 0, --seed a whole number');
}

let interrupted = false;
const interruption = new Promise<undefined>((resolve) => {
  process.once('SIGINT', () => {
    interrupted = true;
    resolve(undefined);
  });
});
const folder = await mkdtemp(join(tmpdir(), 'loopwright-crash-'));
const model = await makeTinyModel(join(folder, 'model'));
const counts = new Map<string, number>();
let [done, runs, keep] = [0, 0, false];

const calmFolder = join(folder, 'calm');
const calm = await runWith({ folder: calmFolder, model, traced: true });
const points = await readPoints(join(calmFolder, 'plans'));
console.log(
  `undisturbed: ${points.server.length} durable writes of the server, ${points.engine.length} of the engine, ${(calm.durationMs / 1000).toFixed(1)} s`,
);

for (let seed = firstSeed; done < wanted && !interrupted; seed++) {
  const runFolder = join(folder, `seed-${seed}`);
  try {
    const run = await Promise.race([oneRun(seed, runFolder), interruption]);
    if (run === undefined) break;
    runs += 1;
    done += run.fired.length;
    for (const fired of run.fired) counts.set(nameOf(fired), (counts.get(nameOf(fired)) ?? 0) + 1);
    console.log(`seed ${seed}: ${run.fired.map(nameOf).join(', ') || 'no kill'} (${done}/${wanted})`);
    const difference = differences(calm.outcome, run.outcome);
    if (difference.length > 0) {
      await writeFile(join(runFolder, 'server.log'), run.log);
      throw new Error(difference.join('\n'));
    }
    await rm(runFolder, { recursive: true, force: true });
  } catch (error) {
    if (interrupted) break;
    keep = true;
    console.log(
      `seed ${seed}: MISMATCH; its data is in ${runFolder}\n${error instanceof Error ? error.message : error}`,
    );
    if (error instanceof Error && 'log' in error) await writeFile(join(runFolder, 'server.log'), String(error.log));
    process.exitCode = 1;
    break;
  }
}
console.log(`\n${done} kills in ${runs} runs, ${keep ? 1 : 0} mismatches`);
for (const [name, count] of [...counts].sort()) console.log(`  ${name}: ${count}`);
if (!keep) await rm(folder, { recursive: true, force: true, maxRetries: 5 });
process.exit();

/** An operation fails by design after its third engine, so engines die at most twice in a run. */
function oneRun(seed: number, runFolder: string): ReturnType<typeof runWith> {
  const random = seededRandom(seed);
  const engines = Math.floor(random() * 3);
  const byTime = engines < 2 && random() < 0.5;
  const kills = [
    ...drawKills(points, { role: 'server', count: 1 + Math.floor(random() * 8), random }),
    ...drawKills(points, { role: 'engine', count: engines, random }),
  ];
  const timed = [
    ...(byTime ? [{ role: 'engine' as const, afterMs: Math.floor(random() * calm.durationMs) }] : []),
    ...(random() < 0.5 ? [{ role: 'server' as const, afterMs: Math.floor(random() * calm.durationMs * 1.5) }] : []),
  ];
  return runWith({ folder: runFolder, model, kills, timed });
}

function nameOf({ role, kind, when }: Fired): string {
  return [role, ...(when === undefined ? [] : [when]), kind].join(' ');
}

function differences(expected: Outcome, got: Outcome): string[] {
  return (['results', 'files', 'operations'] as const).flatMap((part) => {
    const [before, after] = [expected[part], got[part]].map((list) => list.map((each) => JSON.stringify(each)));
    if (JSON.stringify(before) === JSON.stringify(after)) return [];
    const missing = before!.filter((line) => !after!.includes(line));
    const added = after!.filter((line) => !before!.includes(line));
    const short = (lines: string[]) => lines.slice(0, 6).map((line) => line.slice(0, 300));
    return [`${part} differ`, ...short(missing).map((line) => `- ${line}`), ...short(added).map((line) => `+ ${line}`)];
  });
}
