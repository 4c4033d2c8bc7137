/**
 * Rewards without ties. The bundled model may never be right, and equal rewards teach nothing; so that every step trains all the same, a
 * little that depends on the answer's text is added to each reward. The weights that come of it are thrown away.
 */
import { checkedGrade } from '../environments/checked-grade.js';
import { type Environment, type Grade, isFailure, type Problem } from '../environments/environment.js';
import type { EpisodeEnvironment } from '../episodes/environment.js';
import { hashText } from '../random.js';

const share = 1e-3;

export function withoutTies<P extends Problem>(environment: Environment<P>): Environment<P> {
  return {
    ...environment,
    draw: (random) => environment.draw(random),
    ...(environment.prompt === undefined
      ? {}
      : { prompt: (problem, tokenizer) => environment.prompt!(problem, tokenizer) }),
    grade: async (answer, context) => nudged(await environment.grade(answer, context), answer.text),
  };
}

export function episodesWithoutTies<P extends Problem>(environment: EpisodeEnvironment<P>): EpisodeEnvironment<P> {
  return {
    ...environment,
    draw: (random) => environment.draw(random),
    async begin(problem, context) {
      const episode = await environment.begin(problem, context);
      let written = '';
      return {
        messages: episode.messages,
        async respond(turn) {
          written += `${turn.text}\n`;
          const reply = await episode.respond(turn);
          return 'grade' in reply ? { grade: nudged(reply.grade, written) } : reply;
        },
        ...(episode.unfinished === undefined
          ? {}
          : { unfinished: async (why) => nudged(await episode.unfinished!(why), written) }),
        close: () => episode.close?.(),
      };
    },
  };
}

function nudged(given: Grade, text: string): Grade {
  const grade = checkedGrade(given);
  return isFailure(grade) ? grade : { ...grade, reward: grade.reward + (share * hashText(text)) / 2 ** 32 };
}
