import { type Component, createGrader, numericAnswer, type Problem, regexMatch } from 'loopwright';

/** Shorter is better, down to 0 at 200 characters. */
const brief: Component<Problem> = {
  name: 'brief',
  weight: 0.1,
  score: ({ text }) => Math.max(0, 1 - text.length / 200),
};

export const grade = createGrader({
  components: [numericAnswer(), regexMatch({ name: 'marked', pattern: '#### -?[0-9]+', weight: 0.2 }), brief],
});

const problem = { id: 'sum', question: '27+58=', answer: '85' };
for (const text of ['27+58 is #### 85', 'It is 75.', 'I do not know.']) {
  const { components = [], ...whole } = await grade({ problem, text, stopReason: 'stop' });
  const parts = components.map((part) => `${part.name} ${'score' in part ? part.score.toFixed(2) : part.status}`);
  console.log(whole.status, 'reward' in whole ? whole.reward.toFixed(2) : '-', `(${parts.join(', ')})`);
}
