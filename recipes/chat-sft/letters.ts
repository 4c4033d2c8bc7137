/** Letters to a bookshop, and the replies that its house style wants: names, orders and matters are drawn, so that nothing can be learnt by heart but the style. */
import { createRandom, type Problem } from 'loopwright';

export interface Letter extends Problem {
  readonly customer: string;
  readonly order: string;
  readonly matter: string;
}

/** Who writes: no customer is in both sets. */
const customers = {
  train:
    'Adam Anna Bella Carlos Clara David Diego Elena Emma Felix Grace Hannah Henry Isla Jack Julia Kate Leo Lucy Maria Mark Nina Noah Olga Oscar Paula Peter Rosa Sara Simon Tara Tom Vera Victor Wendy Zoe',
  heldOut: 'Alice Boris Chloe Daniel Eva Frank George Ida Laura Martin Nora Oliver Rachel Samuel Theo Ursula',
} as const;

/** As the reply calls it, and as customers do. */
const matters: readonly (readonly [string, string])[] = [
  ['a late parcel', 'my parcel has still not come'],
  ['a torn cover', 'the book came with a torn cover'],
  ['a wrong title', 'I was sent a book that I had not asked for'],
  ['a missing invoice', 'there was no invoice in the parcel'],
  ['a change of address', 'I am moving and need it sent to my new address'],
  ['a cancelled order', 'I no longer want it and would like to cancel'],
  ['a refund', 'I sent the book back and wait for my money'],
  ['a gift card', 'the gift card was not taken off the price'],
];

const openings: readonly ((customer: string, order: string, says: string) => string)[] = [
  (customer, order, says) => `Hi, this is ${customer}. I write about order ${order}: ${says}.`,
  (customer, order, says) => `Order ${order}: ${says}. Can you help? ${customer}`,
  (customer, order, says) => `Hello, my name is ${customer} and ${says}. It is order ${order}.`,
  (customer, order, says) => `${customer} here. About my order ${order}, ${says}. What can be done?`,
];

export const signOff = 'Warm regards, Paper & Ink';

/** The reply in the house's style. */
export function replyTo({ customer, order, matter }: Pick<Letter, 'customer' | 'order' | 'matter'>): string {
  return `Dear ${customer}, we have your letter about ${matter} (order ${order}). You will hear from us within one working day. ${signOff}`;
}

/** Letters that seed and set decide. */
export function letters({
  set,
  count,
  seed,
}: {
  readonly set: keyof typeof customers;
  readonly count: number;
  readonly seed: number;
}): Letter[] {
  const random = createRandom(seed);
  const pick = <T>(items: readonly T[]): T => items[random.integer(items.length)]!; // in range
  const names = customers[set].split(' ');
  return Array.from({ length: count }, (_, i) => {
    const [customer, order] = [pick(names), String(10_000 + random.integer(90_000))];
    const [matter, says] = pick(matters);
    const question = pick(openings)(customer, order, says);
    return { id: `${set}-${i}`, question, answer: replyTo({ customer, order, matter }), customer, order, matter };
  });
}

/** The letters as rows of a chat data set, JSON lines. */
export function chatRows(of: readonly Letter[]): string {
  return of
    .map(({ question, answer }) => ({
      messages: [
        { role: 'user', content: question },
        { role: 'assistant', content: answer },
      ],
    }))
    .map((row) => `${JSON.stringify(row)}\n`)
    .join('');
}
