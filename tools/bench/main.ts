/**
 * `npm run bench -- WORK`: prints JSON lines for the works that the peers are measured on.
 *
 * train B S · decode B · generate B · versions COUNT ROWS · snapshot EVERY_SECONDS · sessions COUNT · streams COUNT · grpo · start (connect to first token, of the bundled model and of MODEL_DIR)
 * sandbox COUNT WORKERS python|javascript (many small programs at once; needs no model) · data GIB (a large JSONL file in flat memory; needs no model)
 * forecast SEED (what preflight says of three runs on the bundled model, and what they take)
 * overlap STEPS MS AT_ONCE SEEDS (GRPO on the bundled model with a slow grader, k = 0, 1, 3: speed and learning curve)
 * Environment: MODEL_DIR, THREADS=2, REPEATS=3, ADAPTER=none|apart|merged (decode, generate), PRECISION=float32|int8 (decode, generate), CLOCK=wall|cpu, MEMORY=low, PROMPT=64, NEW=64
 */
import { data } from './data-works.js';
import { generate, train } from './engine-works.js';
import { forecast } from './forecast-works.js';
import { overlap } from './overlap-works.js';
import { settingsFrom } from './report.js';
import { sandbox } from './sandbox-works.js';
import { grpo, start } from './service-works.js';
import { sessions, snapshot } from './session-works.js';
import { streams } from './stream-works.js';
import { versions } from './version-works.js';

const [work, ...numbers] = process.argv.slice(2);
const given = numbers.map(Number);
const [first = 8, second = 256] = given;
if (work === 'sandbox') {
  await sandbox(given[0] ?? 500, given[1] ?? 2, numbers[2] === 'javascript' ? 'javascript' : 'python');
  process.exit();
}
if (work === 'data') {
  await data(given[0] ?? 2);
  process.exit();
}
if (work === 'forecast') {
  await forecast(given[0] ?? 1);
  process.exit();
}
if (work === 'overlap') {
  await overlap(given[0] ?? 15, given[1] ?? 300, given[2] ?? 16, given[3] ?? 1);
  process.exit();
}
const settings = settingsFrom(process.env);
switch (work) {
  case 'train':
    await train(settings, first, second);
    break;
  case 'decode':
    await generate(settings, first, { prefill: 'apart' });
    break;
  case 'generate':
    await generate(settings, first, { prefill: 'included' });
    break;
  case 'versions':
    await versions(settings, given[0] ?? 4, given[1] ?? 8);
    break;
  case 'snapshot':
    await snapshot(settings, given[0] ?? 30);
    break;
  case 'sessions':
    await sessions(settings, given[0] ?? 50);
    break;
  case 'streams':
    await streams(settings, given[0] ?? 64);
    break;
  case 'grpo':
    await grpo(settings);
    break;
  case 'start':
    await start(settings);
    break;
  default:
    throw new Error(
      `work: expected train B S, decode B, generate B, versions, snapshot, sessions, streams, grpo, start, sandbox, overlap or data, got ${work ?? 'nothing'}`,
    );
}
