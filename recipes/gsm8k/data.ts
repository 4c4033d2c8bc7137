/** The problems: GSM8K from a folder with its two files, or else small ones of the same form that are made by rule. */
import { join } from 'node:path';
import {
  createRandom,
  type Dataset,
  datasetOf,
  openDataset,
  type Problem,
  type RlPromptRow,
  textSource,
} from 'loopwright';

export interface ProblemSets {
  readonly train: Dataset<RlPromptRow>;
  readonly test: Dataset<RlPromptRow>;
}

/** @param folder with `train` and `test` as `.jsonl` or `.parquet`; without it, problems are made */
export async function problemSets(folder?: string, ending = 'jsonl'): Promise<ProblemSets> {
  if (folder === undefined) {
    const made = (part: string, seed: number) =>
      datasetOf([textSource(madeRows(200, seed), { file: `made problems, ${part}` })]).as('rl_prompt');
    return { train: made('train', 1), test: made('test', 2) };
  }
  const [train, test] = await Promise.all(
    ['train', 'test'].map((name) => openDataset(join(folder, `${name}.${ending}`))),
  );
  return { train: train!.as('rl_prompt'), test: test!.as('rl_prompt') }; // two names, two sets
}

/** The first `count` problems of an order that the seed decides. */
export async function problemsOf(rows: Dataset<RlPromptRow>, { count, seed }: { count: number; seed: number }) {
  const problems: Problem[] = [];
  for await (const { id, prompt, answer } of await rows.shuffled({ seed })) {
    if (problems.length === count) break;
    if (typeof prompt === 'string') problems.push({ id, question: prompt, answer });
  }
  return problems;
}

const containers = 'box bag crate basket drawer jar'.split(' ');
const contents = 'pens nuts books shells stamps candles'.split(' ');

/** Two steps each: so many in so many, and some that are taken away. */
function madeRows(count: number, seed: number): string {
  const random = createRandom(seed);
  const between = (low: number, high: number): number => low + random.integer(high - low + 1);
  return Array.from({ length: count }, (_, i) => {
    const [container, content] = [containers, contents].map((words) => words[random.integer(words.length)]!); // in range
    const [number, each] = [between(2, 12), between(2, 12)];
    const gone = between(1, number * each - 1);
    const [all, left] = [number * each, number * each - gone];
    const question = `A shop has ${number} of a kind of ${container} with ${each} ${content} in each (lot ${i}). It sells ${gone} ${content}. How many ${content} are left?`;
    const answer = `There are ${number} * ${each} = <<${number}*${each}=${all}>>${all} ${content}.\nThen ${all} - ${gone} = <<${all}-${gone}=${left}>>${left} are left.\n#### ${left}`;
    return `${JSON.stringify({ question, answer })}\n`;
  }).join('');
}
