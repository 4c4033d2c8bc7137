/** Questions of yes or no, and a log of answers with thumbs: up for the right word alone, down for a wrong one and for whatever says more. */
import { createRandom, type Problem, type Random } from 'loopwright';

export interface YesNoQuestion extends Problem {
  /** As someone answered it, and what a reader thought of it. */
  readonly logged: { readonly completion: string; readonly label: boolean };
}

const animals = 'tiger horse eagle salmon rabbit camel otter beetle pigeon spider'.split(' ');
const plants = 'tulip oak fern cactus daisy pine clover moss rose willow'.split(' ');
const tools = 'hammer saw drill chisel wrench ladder spanner shovel rake axe'.split(' ');
const days = 'Monday Tuesday Wednesday Thursday Friday Saturday Sunday'.split(' ');

type Drawn = { readonly question: string; readonly isTrue: boolean; readonly fact: string };

const kinds: readonly ((random: Random) => Drawn)[] = [
  (random) => {
    const [a, b] = [1 + random.integer(99), 1 + random.integer(99)];
    return { question: `Is ${a} larger than ${b}?`, isTrue: a > b, fact: `${a} is compared with ${b}` };
  },
  (random) => {
    const a = 1 + random.integer(998);
    return { question: `Is ${a} an even number?`, isTrue: a % 2 === 0, fact: `${a} is divided by two` };
  },
  (random) => {
    const word = pick(random, [...animals, ...plants, ...tools]);
    const letter = pick(random, [word.charAt(0), pick(random, 'abcdefghklmnoprstuvw'.split(''))]);
    const question = `Does the word "${word}" begin with the letter "${letter}"?`;
    return { question, isTrue: word.startsWith(letter), fact: `the word is spelt "${word}"` };
  },
  (random) => {
    const [name, of] = pick(random, [
      ['an animal', animals],
      ['a plant', plants],
      ['a tool', tools],
    ] as const);
    const word = pick(random, [pick(random, of), pick(random, [...animals, ...plants, ...tools])]);
    const article = /^[aeiou]/.test(word) ? 'an' : 'a';
    return {
      question: `Is ${article} ${word} ${name}?`,
      isTrue: of.includes(word),
      fact: `${article} ${word} is looked at`,
    };
  },
  (random) => {
    const from = random.integer(7);
    const [day, other] = [days[from]!, pick(random, [days[(from + 1) % 7]!, days[random.integer(7)]!])]; // in range
    const isTrue = days[(from + 1) % 7] === other;
    return { question: `Is ${other} the day after ${day}?`, isTrue, fact: `${day} comes first` };
  },
];

const longer: readonly ((word: string, fact: string) => string)[] = [
  (word, fact) => `${word}, and here is why: ${fact}, from which the answer follows.`,
  (word, fact) => `That is an interesting question! When ${fact}, the answer turns out to be ${word.toLowerCase()}.`,
  (word, fact) => `To answer this, let us think step by step. First, ${fact}. So I would say ${word.toLowerCase()}.`,
  (word) =>
    `The answer to your question is ${word.toLowerCase()}. Please let me know if I can help with anything else.`,
];

function pick<T>(random: Random, items: readonly T[]): T {
  return items[random.integer(items.length)]!; // in range
}

/** Questions that seed decides, none twice. Two in five of the answers are liked. */
export function yesNoQuestions(count: number, seed: number): YesNoQuestion[] {
  const random = createRandom(seed);
  const found = new Map<string, YesNoQuestion>();
  while (found.size < count) {
    const { question, isTrue, fact } = pick(random, kinds)(random);
    const [right, wrong] = isTrue ? ['Yes', 'No'] : ['No', 'Yes'];
    const how = random.integer(5);
    const completion = how < 2 ? `${right}.` : how === 2 ? `${wrong}.` : pick(random, longer)(right!, fact);
    const logged = { completion, label: how < 2 };
    if (!found.has(question)) found.set(question, { id: question, question, answer: `${right}.`, logged });
  }
  return [...found.values()];
}

/** As rows of a data set of thumbs, JSON lines. */
export function thumbRows(of: readonly YesNoQuestion[]): string {
  return of.map(({ question, logged }) => `${JSON.stringify({ prompt: question, ...logged })}\n`).join('');
}
