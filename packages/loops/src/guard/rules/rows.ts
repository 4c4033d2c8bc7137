/** Rows that are lost or come twice, and an optimizer that begins anew. */
import { endedEpochs, repeatedRows } from '../past-rows.js';
import { alarmRule } from '../rule.js';

export const rowsTwice = alarmRule({
  name: 'guard/rows-twice',
  levels: ['note', 'warn'],
  what: 'rows come twice within an epoch',
  remedy:
    'look for a row that is in the data twice (loopwright preflight), two rows of one id, or a resume that goes back behind its checkpoint',
  needs: '`rows`',
  limits: {
    share: {
      value: 0.01,
      why: 'of the rows of an epoch, over the run so far: real data has a few doubles, which are a note',
    },
  },
  look({ now: { facts }, past, limits }) {
    const { rows } = facts;
    if (rows === undefined) return undefined;
    const again = repeatedRows(past.rows, rows);
    if (again.length === 0) return undefined;
    return {
      level: past.rows.repeated + again.length > limits.share * rows.of ? 'warn' : 'note',
      seen: `${again.length} of ${rows.keys.length} rows of the step were taken before in epoch ${again[0]!.epoch + 1}`,
      where: `the first: row ${again[0]!.row} of the step`,
    };
  },
});

export const rowsLost = alarmRule({
  name: 'guard/rows-lost',
  levels: ['note', 'warn'],
  what: 'an epoch ends without some of its rows, or lines of the data could not be read',
  remedy:
    'look for rows that a filter, a failed request or a resume skips; the data set says which lines it could not read',
  needs: '`rows`',
  limits: {},
  look({ now: { facts }, past }) {
    const { rows } = facts;
    if (rows === undefined) return undefined;
    const ended = endedEpochs(past.rows, rows).find(({ missing }) => missing > 0);
    const { unread = 0 } = rows;
    const dropped = past.rows.dropped + (rows.dropped ?? 0);
    if (ended !== undefined)
      return {
        level: ended.missing > dropped ? 'warn' : 'note',
        seen: `epoch ${ended.epoch + 1} ended without ${ended.missing} of its ${rows.of} rows${dropped > 0 ? ` (${dropped} left out as too old)` : ''}`,
      };
    if (unread <= past.rows.unread) return undefined;
    return { level: 'note', seen: `${unread} lines of the data could not be read and are left out` };
  },
});

export const resumeWithoutOptimizer = alarmRule({
  name: 'guard/resume-without-optimizer',
  levels: ['warn'],
  what: 'the optimizer counts its steps from the beginning again: its moments are gone',
  remedy:
    'resume with createTrainingClientFromStateWithOptimizer or loadStateWithOptimizer, from a saveState; weights alone are for a new stage of training',
  needs: '`update` with `optim/step`',
  limits: {},
  look({ now: { step, metrics, isUpdate }, past }) {
    const own = metrics['optim/step'];
    if (!isUpdate || own === undefined) return undefined;
    const before = past.steps.findLast(({ metrics: earlier }) => earlier['optim/step'] !== undefined);
    const last = before?.metrics['optim/step'] ?? 0;
    const isAnew = before === undefined ? past.steps.length === 0 && step > 1 && own === 1 : own <= last;
    if (!isAnew) return undefined;
    return {
      level: 'warn',
      seen: `step ${step} is step ${own} of the optimizer${before === undefined ? '' : `, after step ${last} of it`}`,
    };
  },
});
