/** Sums with a second try: whoever is wrong is told in which direction. */
import { type ArithmeticProblem, arithmetic, type EpisodeEnvironment, type Grade } from 'loopwright';

export const sums = arithmetic({ operations: ['+'], maxOperand: 99 });

export const secondTry: EpisodeEnvironment<ArithmeticProblem> = {
  name: 'second-try',
  draw: (random) => sums.draw(random),
  begin: ({ question, answer }) => ({
    messages: [{ role: 'user', content: question }],
    respond({ index, text }) {
      if (text.trim() === answer) return { grade: ok(index === 0 ? 1 : 0.5) };
      if (index === 1) return { grade: ok(0) };
      const number = /^\s*\d{1,4}\s*$/.test(text) ? Number(text) : undefined;
      const hint = number === undefined ? 'a number' : number > Number(answer) ? 'less' : 'more';
      return { messages: [{ role: 'user', content: `${hint}. ${question}` }] };
    },
  }),
};

function ok(reward: number): Grade {
  return { status: 'ok', reward };
}
