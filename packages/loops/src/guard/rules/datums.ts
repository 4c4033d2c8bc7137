/** Whether datums train the tokens that were sampled, each predicted by the one before it. */
import { hasOtherTokens, maskShift, targetShift } from '../datum-layout.js';
import { alarmRule } from '../rule.js';

export const shiftedDatum = alarmRule({
  name: 'guard/shifted-datum',
  levels: ['warn', 'stop'],
  what: 'targets or weights of the data are shifted by the wrong number of tokens',
  remedy:
    'position t of the model input predicts token t + 1: model input is the sequence without its last token, targets are it without its first, and weights stand beside the targets; rlDatum and sftDatum do it',
  needs: '`data`; for the weights, `sources`',
  limits: {},
  explains: [
    'guard/ratio',
    'guard/mask-prompt',
    'guard/tool-results-trained',
    'guard/retokenized',
    'guard/gradient-exploding',
  ],
  look({ now: { facts, layouts } }) {
    const { data = [] } = facts;
    const shifts = data.map(targetShift);
    const first = shifts.findIndex((shift) => shift !== undefined);
    if (first !== -1) {
      const count = shifts.filter((shift) => shift !== undefined).length;
      return {
        level: 'stop',
        seen: `in ${count} of ${data.length} datums targets are the tokens ${shifts[first]} behind their position, where they have to be 1 behind`,
        where: `the first: datum ${first}`,
      };
    }
    const known = data.flatMap((datum, i) => {
      const layout = layouts[i];
      return layout === undefined ? [] : [maskShift(datum, layout)];
    });
    // A mask of the caller's own may look so in a datum or two, not in all.
    if (known.length < 2 || known.some((shift) => shift === 0 || shift !== known[0])) return undefined;
    return {
      level: 'warn',
      seen: `in all ${known.length} datums the weights stand one position ${known[0] === -1 ? 'after' : 'before'} the sampled tokens`,
      where: 'the first: datum 0',
    };
  },
});

export const retokenized = alarmRule({
  name: 'guard/retokenized',
  levels: ['note', 'warn'],
  what: 'text has other ids when it is encoded again; at level warn those others are trained',
  remedy:
    'train the ids that were sampled, never text that was encoded again: keep `tokens` of the sample beside its logprobs',
  needs: '`data` and `sources`; for the note, `groups` with `retokenizedTurns`',
  limits: {},
  explains: ['guard/ratio'],
  look({ now: { facts, samples, layouts } }) {
    const { data = [] } = facts;
    const other = data.flatMap((datum, i) => {
      const layout = layouts[i];
      return layout !== undefined && hasOtherTokens(datum, layout) ? [i] : [];
    });
    if (other.length > 0)
      return {
        level: 'warn',
        seen: `${other.length} of ${data.length} datums train other ids than were sampled`,
        where: `the first: datum ${other[0]}`,
      };
    const turns = samples.reduce((sum, { retokenizedTurns = 0 }) => sum + retokenizedTurns, 0);
    if (turns === 0) return undefined;
    return {
      level: 'note',
      seen: `the text of ${turns} turns, in ${samples.length} rollouts, has other ids when it is encoded again; the sampled ids are trained`,
    };
  },
});
