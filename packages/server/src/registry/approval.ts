/** Approving a version: asked of it are the results of an evaluation, or a reason to do without. */
import {
  type ApprovalGap,
  approvalGaps,
  complaint,
  otherComparison,
  requireReason,
  type VersionChange,
  type VersionMetric,
  versionLimits,
  versionResults,
} from '@loopwright/protocol';

/**
 * A change that approves, as it is kept: the reason to do without results is in its note. Other changes are what they were.
 *
 * @param known metrics of the version before the change
 * @throws `approval_refused` when results are missing, or say that it fell, and no reason is given; `invalid_argument` for a reason of fewer than ten characters, or a note that becomes too long
 */
export function checkedApproval(change: VersionChange, known: readonly VersionMetric[]): VersionChange {
  const { approval, metrics = {} } = change;
  if (approval?.status !== 'Approved') return change;
  const { withoutResults = '', ...kept } = approval;
  const added = Object.entries(metrics).flatMap(([name, metric]) =>
    metric === null ? [] : [{ name, value: metric.value }],
  );
  const left = known.filter(({ name }) => !Object.hasOwn(metrics, name));
  const measured = [...left, ...added];
  const found = approvalGaps(measured);
  if (found.length === 0) return { ...change, approval: kept };
  const gaps = found.map(({ result, why }) => `${result} ${why}`);
  if (withoutResults.trim() === '')
    throw complaint({
      code: 'approval_refused',
      field: 'approval',
      expected: 'a version with evaluation, regression and cost against the start of its training, none of which fell',
      got: found.map((gap) => gapText(gap, measured)).join(', '),
      remedy:
        'attach them with loopwright eval (--against only with a version that it came from), or give the reason to do without: --without-results (approval.withoutResults), which is kept in the note',
    });
  requireReason(withoutResults, {
    field: 'approval.withoutResults',
    remedy: 'say why it may be approved all the same: it is kept in the note',
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

/** Which result is missing or fell; of one that fell its figures, and of one that was measured against something else that it was. */
function gapText({ result, why }: ApprovalGap, metrics: readonly Pick<VersionMetric, 'name' | 'value'>[]): string {
  const values = new Map(metrics.map(({ name, value }) => [name, value]));
  const [difference, low, high, n = ''] = versionResults[result] as readonly string[]; // true: a list of names
  const text = (name = ''): string => (values.get(name) ?? Number.NaN).toFixed(3);
  if (why === 'fell')
    return `${result} fell (difference ${text(difference)}, at 95 % from ${text(low)} to ${text(high)}, n = ${values.get(n)})`;
  const isOther = difference !== undefined && values.has(`${otherComparison}${difference}`);
  return `${result} missing${isOther ? ' (there is one against another version than it started from)' : ''}`;
}
