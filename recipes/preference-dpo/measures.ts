/** Questions about sizes, with two answers that say the same, in metric units and in others: the metric one is preferred. */
import type { Problem } from 'loopwright';

export interface Question extends Problem {
  readonly thing: string;
  /** In metric units; also the `answer`. */
  readonly chosen: string;
  readonly rejected: string;
}

interface Measure {
  readonly questions: readonly ((thing: string) => string)[];
  readonly says: (thing: string, amount: string) => string;
  readonly metric: string;
  readonly other: string;
  /** Others in one metric unit. */
  readonly factor: number;
  /** Roughly, by thing. */
  readonly sizes: Readonly<Record<string, number>>;
}

const measures: readonly Measure[] = [
  {
    questions: [(thing) => `How tall is ${thing}?`, (thing) => `What is the height of ${thing}?`],
    says: (thing, amount) => `${thing} is about ${amount} tall.`,
    ...{ metric: 'meters', other: 'feet', factor: 3.281 },
    sizes: {
      'a giraffe': 5,
      'an elephant': 3,
      'an ostrich': 2.5,
      'a sunflower': 2,
      'an oak tree': 20,
      'a palm tree': 15,
      'a redwood tree': 90,
      'a lamp post': 8,
      'a garden shed': 2.5,
      'a basketball hoop': 3,
      'a double-decker bus': 4.4,
      'a lighthouse': 30,
      'the Eiffel Tower': 330,
      'Big Ben': 96,
      'the Leaning Tower of Pisa': 57,
      'the Statue of Liberty': 93,
      'the Empire State Building': 443,
      'the Great Pyramid': 139,
      'Cologne Cathedral': 157,
      'Mount Everest': 8849,
      'Mont Blanc': 4806,
      'Mount Fuji': 3776,
      Kilimanjaro: 5895,
      'the Matterhorn': 4478,
    },
  },
  {
    questions: [(thing) => `How long is ${thing}?`, (thing) => `What is the length of ${thing}?`],
    says: (thing, amount) => `${thing} is about ${amount} long.`,
    ...{ metric: 'meters', other: 'feet', factor: 3.281 },
    sizes: {
      'a blue whale': 25,
      'a crocodile': 5,
      'a python': 6,
      'a great white shark': 5,
      'a dolphin': 2.5,
      'a rowing boat': 4,
      'a city bus': 12,
      'a tram': 30,
      'a passenger jet': 40,
      'a tennis court': 24,
      'a football pitch': 105,
      'an Olympic swimming pool': 50,
      'the Golden Gate Bridge': 2737,
      'Tower Bridge': 244,
    },
  },
  {
    questions: [(thing) => `How heavy is ${thing}?`, (thing) => `What is the weight of ${thing}?`],
    says: (thing, amount) => `${thing} weighs about ${amount}.`,
    ...{ metric: 'kilograms', other: 'pounds', factor: 2.205 },
    sizes: {
      'an African elephant': 5000,
      'a hippopotamus': 1500,
      'a horse': 500,
      'a lion': 190,
      'a tiger': 200,
      'a brown bear': 300,
      'a polar bear': 450,
      'a gorilla': 160,
      'a giant panda': 100,
      'a kangaroo': 60,
      'a cow': 700,
      'a pig': 200,
      'a sheep': 80,
      'a cat': 4,
      'a swan': 10,
      'a penguin': 30,
      'a grand piano': 500,
      'a small car': 1100,
      'a bicycle': 12,
      'a bowling ball': 6,
    },
  },
  {
    questions: [(thing) => `How fast is ${thing}?`, (thing) => `What is the top speed of ${thing}?`],
    says: (thing, amount) => `${thing} reaches about ${amount} per hour.`,
    ...{ metric: 'kilometers', other: 'miles', factor: 0.6214 },
    sizes: {
      'a cheetah': 110,
      'a zebra': 65,
      'a hare': 60,
      'a greyhound': 65,
      'a racehorse': 70,
      'a peregrine falcon': 320,
      'a swordfish': 95,
      'a racing bicycle': 70,
      'a city tram': 70,
      'a passenger ship': 50,
    },
  },
  {
    questions: [(thing) => `How far is it ${thing}?`, (thing) => `What is the distance ${thing}?`],
    says: (thing, amount) => `It is about ${amount} ${thing}.`,
    ...{ metric: 'kilometers', other: 'miles', factor: 0.6214 },
    sizes: {
      'from Paris to London': 344,
      'from Berlin to Munich': 504,
      'from Rome to Milan': 477,
      'from Madrid to Barcelona': 505,
      'from Vienna to Prague': 251,
      'from Tokyo to Osaka': 400,
      'from Dublin to Belfast': 141,
      'from Sydney to Melbourne': 713,
      'from Oslo to Stockholm': 416,
      'from New York to Boston': 306,
      'from the Earth to the Moon': 384_400,
      'around the Earth': 40_075,
    },
  },
];

/** Two questions to each thing; every third thing is held out, with both. */
export const questions: { readonly train: readonly Question[]; readonly heldOut: readonly Question[] } = {
  train: questionsWhere((index) => index % 3 !== 1),
  heldOut: questionsWhere((index) => index % 3 === 1),
};

function questionsWhere(isWanted: (index: number) => boolean): Question[] {
  return measures.flatMap(({ questions: ways, says, metric, other, factor, sizes }) =>
    Object.entries(sizes)
      .filter((_, i) => isWanted(i))
      .flatMap(([thing, size]) => {
        const chosen = sentence(says(thing, `${rounded(size)} ${metric}`));
        const rejected = sentence(says(thing, `${rounded(size * factor)} ${other}`));
        return ways.map((way, w) => ({
          ...{ id: `${thing} (${metric}, ${w})`, question: way(thing), answer: chosen },
          ...{ thing, chosen, rejected },
        }));
      }),
  );
}

/** Two digits that count. */
function rounded(amount: number): string {
  return Number(amount.toPrecision(2)).toLocaleString('en');
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

/** As rows of a preference data set, JSON lines. */
export function preferenceRows(of: readonly Question[]): string {
  return of
    .map(({ question, chosen, rejected }) => `${JSON.stringify({ prompt: question, chosen, rejected })}\n`)
    .join('');
}
