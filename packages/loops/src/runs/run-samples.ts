/** What was sampled, as it is kept in `samples.jsonl`: content, for people; never for logs. */
import type { SampledTokens } from '@loopwright/client';
import type { Tokenizer } from '@loopwright/text';
import * as z from 'zod';
import type { GradedComponent, Problem } from '../environments/environment.js';
import type { ModelTurn } from '../episodes/environment.js';
import type { EpisodeRollout } from '../episodes/run-episode.js';
import type { Rollout } from '../training/rollouts.js';
import { marksOf, sampleMarks } from './sample-marks.js';

const ids = z.array(z.number().int().min(0));

const runSample = z.object({
  /** Of what was sampled at this step. */
  step: z.number().int().min(0),
  /** `fixed`: of the same problems at the start, in the middle and at the end. */
  type: z.enum(['train', 'validation', 'fixed']),
  problem: z.string(),
  question: z.string(),
  /** Of the problem's answers at this step, from 0. */
  member: z.number().int().min(0),
  /** Place of its group in the step, from 0, and how many answers that has; of these, some may not be kept. */
  group: z.number().int().min(0).optional(),
  groupSize: z.number().int().min(1).optional(),
  /** Of all that was sampled at the step for training. */
  marks: z.array(z.enum(sampleMarks)).optional(),
  /** In order; one of an answer, several of an episode. Each goes on from those before it, unless `fresh`. */
  segments: z.array(
    z.object({
      /** Ids between the answer before and this one: the prompt. */
      prompt: ids,
      /** Those as text, where the run was given a tokenizer. */
      promptText: z.string().optional(),
      tokens: ids,
      /** Of `tokens`, at temperature 1; in nats. */
      logprobs: z.array(z.number()),
      text: z.string(),
      stop: z.string(),
      /** A new sequence: nothing of the segments before is in its context. */
      fresh: z.boolean().optional(),
    }),
  ),
  /** Of the grade, or how an episode without one ended. */
  status: z.string(),
  reward: z.number().optional(),
  /** The grade's reward, where what is trained on is another: lowered for its length, or a floor. */
  graded: z.number().optional(),
  components: z
    .array(z.object({ name: z.string(), weight: z.number(), status: z.string(), score: z.number().optional() }))
    .optional(),
});

/** One answer or episode, as it is kept. */
export type RunSample = Readonly<z.infer<typeof runSample>>;

/** Undefined for what is no sample. */
export function checkSample(value: unknown): RunSample | undefined {
  return runSample.safeParse(value).data;
}

/** The rollouts of a problem: a group of answers, or of episodes. */
export interface SampledRollouts {
  readonly problem: Pick<Problem, 'id'> & { readonly question?: string };
  /** Of answers; episodes have theirs in their sequences. */
  readonly prompt?: readonly number[];
  readonly rollouts: readonly (Rollout | EpisodeRollout)[];
}

export interface SampleOrigin {
  readonly step: number;
  readonly type: RunSample['type'];
  /** For the text of prompts. */
  readonly tokenizer?: Tokenizer;
  /** Groups that are kept whole, from the first; of the others the best, the worst and the longest of all alone. */
  readonly whole: number;
}

export function samplesOf(
  groups: readonly SampledRollouts[],
  { step, type, tokenizer, whole }: SampleOrigin,
): RunSample[] {
  const marks = type === 'train' ? marksOf(groups) : undefined;
  const decode = (prompt: readonly number[]) =>
    tokenizer === undefined ? {} : { promptText: tokenizer.decode([...prompt], { skipSpecialTokens: false }) };
  return groups.flatMap(({ problem, prompt = [], rollouts }, group) =>
    rollouts.flatMap((rollout, member): RunSample[] => {
      const marked = marks?.get(rollout);
      if (group >= whole && marked === undefined) return [];
      const { grade, reward } = rollout;
      const isEpisode = 'turns' in rollout;
      const sample = {
        ...{ step, type, problem: problem.id, question: problem.question ?? '', member },
        ...{ group, groupSize: rollouts.length },
        ...(marked === undefined ? {} : { marks: [...marked] }),
        segments: (isEpisode ? segmentsOf(rollout) : [segment(rollout.sequence, { prompt, text: rollout.text })]).map(
          (each) => ({
            ...each,
            ...decode(each.prompt),
          }),
        ),
        status: grade?.status ?? (isEpisode ? rollout.status : 'ungraded'),
        ...(reward === undefined ? {} : { reward }),
        ...(isEpisode || grade === undefined || !('reward' in grade) || grade.reward === reward
          ? {}
          : { graded: grade.reward }),
        ...(grade?.components === undefined ? {} : { components: grade.components.map(componentOf) }),
      };
      return [sample];
    }),
  );
}

function segmentsOf({ sequences, turns }: EpisodeRollout): RunSample['segments'] {
  return sequences.flatMap((sequence, s) =>
    sequence.map(({ context, answer, turn }, i) => ({
      ...segment(answer, { prompt: context, text: turnText(turns[turn]?.turn) }),
      ...(s > 0 && i === 0 ? { fresh: true } : {}),
    })),
  );
}

/** All that was written: reasoning, text, calls. */
function turnText(turn: ModelTurn | undefined): string {
  if (turn === undefined) return '';
  const calls = turn.toolCalls.map((call) => `${call.name}(${JSON.stringify(call.arguments)})`);
  return [turn.reasoning, turn.text, ...calls].filter((part) => part !== '').join('\n');
}

function segment(
  { tokens, logprobs, stopReason }: SampledTokens,
  { prompt, text }: { readonly prompt: readonly number[]; readonly text: string },
): RunSample['segments'][number] {
  return {
    prompt: [...prompt],
    tokens: Array.from(tokens),
    logprobs: Array.from(logprobs, shortFloat),
    text,
    stop: stopReason,
  };
}

/** Nine digits name a float32 exactly. */
function shortFloat(value: number): number {
  return Number(value.toPrecision(9));
}

function componentOf(component: GradedComponent): NonNullable<RunSample['components']>[number] {
  const { name, weight, status } = component;
  return { name, weight, status, ...('score' in component ? { score: component.score } : {}) };
}
