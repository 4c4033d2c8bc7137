/** Approving a version: asked of it are the results of an evaluation, or a reason to do without. */
import { approvalGaps, complaint, type VersionChange, type VersionMetric, versionLimits } from '@loopwright/protocol';

/**
 * A change that approves, as it is kept: the reason to do without results is in its note. Other changes are what they were.
 *
 * @param known metrics of the version before the change
 * @throws `approval_refused` when results are missing, or say that it fell, and no reason is given; `invalid_argument` for a note that becomes too long
 */
export function checkedApproval(change: VersionChange, known: readonly VersionMetric[]): VersionChange {
  const { approval, metrics = {} } = change;
  if (approval?.status !== 'Approved') return change;
  const { withoutResults = '', ...kept } = approval;
  const added = Object.entries(metrics).flatMap(([name, metric]) =>
    metric === null ? [] : [{ name, value: metric.value }],
  );
  const left = known.filter(({ name }) => !Object.hasOwn(metrics, name));
  const gaps = approvalGaps([...left, ...added]).map(({ result, why }) => `${result} ${why}`);
  if (gaps.length === 0) return { ...change, approval: kept };
  if (withoutResults.trim() === '')
    throw complaint({
      code: 'approval_refused',
      field: 'approval',
      expected: 'a version with evaluation, regression and cost, none of which fell',
      got: gaps.join(', '),
      remedy:
        'attach them with loopwright eval, or give the reason to do without: --without-results (approval.withoutResults), which is kept in the note',
    });
  const note = [kept.note, `approved with ${gaps.join(', ')}: ${withoutResults.trim()}`]
    .filter((text) => text !== '')
    .join('; ');
  if (note.length > versionLimits.note)
    throw complaint({
      field: 'approval.withoutResults',
      expected: `with the note and the results at most ${versionLimits.note} characters`,
      got: `${note.length}`,
    });
  return { ...change, approval: { ...kept, note } };
}
