/** What the weights of the data cover. */
import { trainedOf } from '../datum-layout.js';
import { weightsOf } from '../datum-weights.js';
import type { DatumFacts, SourcePart } from '../facts.js';
import type { Observation } from '../observation.js';
import { alarmRule } from '../rule.js';

export const maskEmpty = alarmRule({
  name: 'guard/mask-empty',
  levels: ['warn', 'stop'],
  what: 'weights are 0 on every position of a datum, so nothing of it is trained',
  remedy: 'look at the datum with explain: answers that were cut off, or a mask made for another tokenization, end so',
  needs: '`data`',
  limits: {},
  explains: ['guard/gradient-zero'],
  look({ now: { facts } }) {
    const { data = [] } = facts;
    const empty = data.flatMap((datum, i) => (isCovered(datum, () => false) ? [i] : []));
    if (empty.length === 0) return undefined;
    return {
      level: empty.length === data.length ? 'stop' : 'warn',
      seen: `${empty.length} of ${data.length} datums have no weight other than 0`,
      where: `the first: datum ${empty[0]}`,
    };
  },
});

/** Whether weights are other than 0 exactly where `covers` says. */
function isCovered(datum: DatumFacts, covers: (position: number) => boolean): boolean {
  const weights = weightsOf(datum);
  for (let t = 0; t < datum.modelInput.length; t++) if ((weights[t] !== 0) !== covers(t)) return false;
  return true;
}

interface Covered {
  readonly count: number;
  readonly trained: number;
  readonly datum: number;
}

/** Trained targets of a kind, over all datums whose making is known. */
function covered({ facts: { data = [] }, layouts }: Observation, kind: SourcePart['kind']): Covered {
  let [count, trained, first] = [0, 0, -1];
  for (const [i, datum] of data.entries()) {
    const layout = layouts[i];
    if (layout === undefined) continue;
    const own = trainedOf(datum, layout, kind);
    count += own;
    trained += own + trainedOf(datum, layout, 'sampled');
    if (own > 0 && first === -1) first = i;
  }
  return { count, trained, datum: first };
}

export const maskPrompt = alarmRule({
  name: 'guard/mask-prompt',
  levels: ['note', 'warn', 'stop'],
  what: 'the weights cover prompts',
  remedy: 'set weights to 0 up to the answer, as rlDatum, sftDatum and sftDatumFromMessages do',
  needs: '`data`; to be sure, `sources`',
  limits: {
    minLength: {
      value: 8,
      why: 'tokens of the shortest datum, where it is not known what it was made of: shorter ones may be all answer',
    },
  },
  explains: ['guard/ratio', 'guard/gradient-exploding'],
  look({ now, limits }) {
    const { data = [], sources = [] } = now.facts;
    const { count, trained, datum } = covered(now, 'prompt');
    if (count > 0) {
      // In supervised data it may be meant; an advantage on what nobody sampled never is.
      const isRl = data[datum]?.lossFnInputs.advantages !== undefined;
      return {
        level: isRl ? 'stop' : 'warn',
        seen: `${count} of ${trained} trained tokens are of prompts`,
        where: `the first: datum ${datum}`,
      };
    }
    if (data.length < 2 || sources.length > 0 || data.some(({ modelInput }) => modelInput.length < limits.minLength))
      return undefined;
    const isInverted = data.every((each) => {
      const weights = weightsOf(each);
      return weights[0] !== 0 && weights[each.modelInput.length - 1] === 0;
    });
    if (isInverted) return { level: 'warn', seen: `all ${data.length} datums weigh their beginning and not their end` };
    return data.every((each) => isCovered(each, () => true))
      ? { level: 'note', seen: `all ${data.length} datums weigh every position: prompts too, if they have any` }
      : undefined;
  },
});

export const toolResultsTrained = alarmRule({
  name: 'guard/tool-results-trained',
  levels: ['stop'],
  what: 'the weights cover what tools, users or the template wrote between two answers',
  remedy: 'make the data with episodeDatums or recordedDatums, which weigh what the model sampled and nothing else',
  needs: '`data`, `sources` with parts of the kind `context`',
  limits: {},
  explains: ['guard/ratio', 'guard/gradient-exploding'],
  look({ now }) {
    const { count, trained, datum } = covered(now, 'context');
    if (count === 0) return undefined;
    return {
      level: 'stop',
      seen: `${count} of ${trained} trained tokens were not sampled by the model and come after its first answer`,
      where: `the first: datum ${datum}`,
    };
  },
});
