/** What people say of versions, and what becomes of them, over our own routes and over those of the model package API. */
import { LoopwrightError, versionResults } from '@loopwright/protocol';
import { afterEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../testing/manual-clock.js';
import { pass, saveState, saveWeights, step } from '../testing/operations.js';
import { type Body, openTestServer, type TestServer, type TestServerOptions } from '../testing/test-server.js';

const open: TestServer[] = [];
async function started(options: TestServerOptions = {}): Promise<TestServer> {
  const server = await openTestServer(options);
  open.push(server);
  await server.createSession('s');
  return server;
}
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

const group = 'sagemaker-default';
const arn = (number: number) => `arn:aws:sagemaker:self-hosted-1:000000000000:model-package/${group}/${number}`;
const path = (number: number) => `/v1/registry/versions/${group}/${number}`;
const listed = async (server: TestServer, query = '') =>
  ((await server.request('GET', `/v1/registry/versions${query}`)).body.versions as Body[]).map(({ number }) => number);
const described = async (server: TestServer, number: number) => (await server.request('GET', path(number))).body;

describe('what is said of a version', () => {
  it('is changed in one go, shown by both wires, and leaves the rest as it was', async () => {
    const server = await started();
    await server.train('s', 1, { type: 'save-state', description: 'first' });
    expect(await described(server, 1)).toMatchObject({
      id: arn(1),
      kind: 'state',
      state: 'available',
      description: 'first',
      tags: {},
      metrics: [],
      approval: { status: 'PendingManualApproval', note: '', decidedAtMs: null },
      expiresAtMs: null,
    });
    const change = {
      description: 'better',
      approval: { status: 'Rejected', note: 'repeats itself' },
      tags: { team: 'math', stage: 'trial' },
      metrics: { 'eval/accuracy': { value: 0.52, note: '1319 problems' }, 'eval/length': { value: 118 } },
    };
    expect((await server.request('PATCH', path(1), change)).status).toBe(200);
    await server.request('PATCH', path(1), { tags: { stage: null }, metrics: { 'eval/length': null } });
    expect(await described(server, 1)).toMatchObject({
      description: 'better',
      approval: { status: 'Rejected', note: 'repeats itself', decidedAtMs: expect.any(Number) },
      tags: { team: 'math' },
      metrics: [{ name: 'eval/accuracy', value: 0.52, note: '1319 problems', atMs: expect.any(Number) }],
    });
    const { body } = await server.control('DescribeModelPackage', { ModelPackageName: arn(1) });
    expect(body).toMatchObject({ ModelApprovalStatus: 'Rejected', ApprovalDescription: 'repeats itself' });
    const card = JSON.parse((body.ModelCard as { ModelCardContent: string }).ModelCardContent);
    expect(card.evaluation_details[0].metric_groups[0].metric_data).toEqual([
      { name: 'eval/accuracy', type: 'number', value: 0.52, notes: '1319 problems' },
    ]);
  });

  it('is nobody’s approval until somebody gives one; the model package API calls that approved, as the service does', async () => {
    const server = await started();
    for (const turn of [1, 2, 3]) await server.train('s', turn, saveState);
    const packages = async (ModelApprovalStatus: string) => {
      const { body } = await server.control('ListModelPackages', { ModelApprovalStatus });
      return (body.ModelPackageSummaryList as Body[]).map(({ ModelPackageVersion: number }) => number);
    };
    await server.request('PATCH', path(2), { approval: { status: 'Approved', withoutResults: 'judged by people' } });
    await server.request('PATCH', path(3), { approval: { status: 'PendingManualApproval' } });
    expect(await listed(server, '?approval=Approved')).toEqual([2]);
    expect(await listed(server, '?approval=PendingManualApproval')).toEqual([3, 1]);
    expect([await packages('Approved'), await packages('PendingManualApproval')]).toEqual([[2, 1], [3]]);
    // A note alone decides nothing.
    await server.control('UpdateModelPackage', { ModelPackageArn: arn(1), ApprovalDescription: 'to be looked at' });
    expect(await described(server, 1)).toMatchObject({
      approval: { status: 'PendingManualApproval', note: 'to be looked at', decidedAtMs: null },
    });
    const { body } = await server.control('DescribeModelPackage', { ModelPackageName: arn(1) });
    expect(body).toMatchObject({ ModelApprovalStatus: 'Approved', ApprovalDescription: 'to be looked at' });
    const card = await (await server.fetch(`${path(1)}/card`)).text();
    expect(card).toContain('| approval | nobody has decided: to be looked at |');
  });

  it('comes to the model card as text: no control character that a terminal would obey', async () => {
    const server = await started();
    await server.train('s', 1, { type: 'save-state', description: 'fine\n\u001b[2Jhidden' });
    const note = 'ok\u001b]0;title\u0007 \u009b31m\u202edlrow';
    const approval = { status: 'Approved', note, withoutResults: 'a toy model' };
    await server.request('PATCH', path(1), { approval, metrics: { 'eval/x': { value: 1, note: '\u001b[1m' } } });
    const card = await (await server.fetch(`${path(1)}/card`)).text();
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there
    expect(card).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
    expect(card).toContain('\\\\u\\{1b\\}');
  });

  it('is approved with the results of an evaluation, or with a reason that is kept', async () => {
    const server = await started();
    await server.train('s', 1, saveState);
    const approve = (more: object = {}, metrics: object = {}) =>
      server.request('PATCH', path(1), { approval: { status: 'Approved', note: 'fine', ...more }, metrics });
    const refused = await approve();
    expect([refused.status, refused.body]).toMatchObject([
      409,
      {
        code: 'approval_refused',
        details: {
          got: 'evaluation missing, regression missing, cost missing',
          remedy: expect.stringContaining('loopwright eval'),
        },
      },
    ]);
    expect((await approve({ withoutResults: ' ' })).status).toBe(409);
    expect((await approve({ withoutResults: 'x'.repeat(1000) })).body).toMatchObject({ code: 'invalid_argument' });
    expect((await approve({ withoutResults: 'a toy' })).body).toMatchObject({
      code: 'invalid_argument',
      details: { field: 'approval.withoutResults', got: '5 characters', remedy: expect.any(String) },
    });
    expect((await approve({ withoutResults: 'a toy model' })).status).toBe(200);
    const note = 'fine; approved with evaluation missing, regression missing, cost missing: a toy model';
    expect(await described(server, 1)).toMatchObject({ approval: { status: 'Approved', note } });

    const names = Object.values(versionResults).flat();
    const metrics = (changes: Readonly<Record<string, number>> = {}) =>
      Object.fromEntries(names.map((name) => [name, { value: changes[name] ?? 0.25 }]));
    const fell = await approve({}, metrics({ 'regression/difference_high': -0.01 }));
    expect(fell.body).toMatchObject({
      code: 'approval_refused',
      details: { got: 'regression fell (difference 0.250, at 95 % from 0.250 to -0.010, n = 0.25)' },
    });
    const other = await approve({}, { 'against/eval/difference': { value: 0.25 } });
    expect(other.body).toMatchObject({
      details: {
        got: expect.stringMatching(
          /^evaluation missing \(there is one against another version than it started from\), r/,
        ),
        expected: expect.stringContaining('against the start of its training'),
      },
    });
    expect(await described(server, 1)).toMatchObject({ metrics: [] });
    // Not distinguishable from the start is a result.
    expect((await approve({}, metrics({ 'eval/difference_low': -0.1 }))).status).toBe(200);
    expect(await described(server, 1)).toMatchObject({ approval: { note: 'fine' } });
    const card = await (await server.fetch(`${path(1)}/card`)).text();
    expect(card).toContain(
      '- evaluation: share right on held-out rows, difference 0.250 (95 % interval -0.100 to 0.250, n = 0.25)',
    );
    expect(card).toMatch(/- regression: .*\n- cost: .*; an answer takes 0 ms \(p50\), where the start takes 0 ms\n/);
    expect((await server.request('PATCH', path(1), { approval: { status: 'Rejected' } })).status).toBe(200);
  });

  it('is refused by field where it is wrong, and then nothing of it is kept', async () => {
    const server = await started();
    await server.train('s', 1, saveState);
    const many = Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`t${i}`, 'x']));
    for (const [change, field] of [
      [{ approval: { status: 'approved' } }, 'body.approval.status'],
      [{ metrics: { 'eval/x': { value: 'high' } } }, 'body.metrics.eval/x.value'],
      [{ metrics: { 'eval x': { value: 1 } } }, 'body.metrics key'],
      [{ tags: { a: 'line\nbreak' } }, 'body.tags.a'],
      [{ approved: true }, 'body.approved'],
      [JSON.parse('{"tags": {"__proto__": "x"}}'), 'body.tags'],
      [{ tags: Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`t${i}`, null])) }, 'body.tags'],
      [{ description: 'kept?', tags: many }, 'tags'],
      [{ description: 'kept?', expiresAtMs: 1 }, 'expiresAtMs'],
    ] as const) {
      const answer = await server.request('PATCH', path(1), change);
      expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_argument', details: { field } } });
    }
    expect(await described(server, 1)).toMatchObject({ description: '', tags: {}, metrics: [] });
    expect(await server.request('PATCH', path(9), {})).toMatchObject({
      status: 404,
      body: { code: 'unknown_version' },
    });
    expect(await server.request('GET', `/v1/registry/versions/${group}/x`)).toMatchObject({ status: 400 });
  });

  it('can be changed through the model package API: approval and tags, of groups as well', async () => {
    const server = await started();
    await server.train('s', 1, saveWeights());
    await server.train('s', 2, saveWeights());
    const update = {
      ModelPackageArn: arn(1),
      ModelApprovalStatus: 'PendingManualApproval',
      ApprovalDescription: 'look',
    };
    expect((await server.control('UpdateModelPackage', update)).body).toEqual({ ModelPackageArn: arn(1) });
    const pending = await server.control('ListModelPackages', { ModelApprovalStatus: 'PendingManualApproval' });
    expect(pending.body.ModelPackageSummaryList).toMatchObject([{ ModelPackageVersion: 1 }]);
    const more = await server.control('UpdateModelPackage', { ...update, ModelCard: { ModelCardContent: '{}' } });
    expect(more.body).toMatchObject({ __type: 'ValidationException', message: expect.stringContaining('ModelCard') });

    const groupArn = `arn:aws:sagemaker:self-hosted-1:000000000000:model-package-group/${group}`;
    for (const ResourceArn of [arn(1), groupArn]) {
      const Tags = [
        { Key: 'team', Value: 'math' },
        { Key: 'a', Value: '1' },
      ];
      expect((await server.control('AddTags', { ResourceArn, Tags })).body.Tags).toHaveLength(2);
      await server.control('DeleteTags', { ResourceArn, TagKeys: ['a', 'none'] });
      expect((await server.control('ListTags', { ResourceArn })).body.Tags).toEqual([{ Key: 'team', Value: 'math' }]);
    }
    expect(await listed(server, '?tag=team')).toEqual([1]);
    expect(await listed(server, '?tag=team=math')).toEqual([1]);
    expect(await listed(server, '?tag=team=art')).toEqual([]);
  });

  it('is not quoted when it is refused', async () => {
    const server = await started();
    await server.train('s', 1, saveState);
    const answer = await server.request('PATCH', path(1), { tags: { 'secret\n': 'value' } });
    expect(JSON.stringify(answer.body)).not.toContain('secret');
  });
});

describe('groups', () => {
  it('count their versions and are described', async () => {
    const server = await started();
    await server.control('CreateModelPackageGroup', {
      ModelPackageGroupName: 'mine',
      ModelPackageGroupDescription: 'for the bench',
      Tags: [{ Key: 'owner', Value: 'me' }],
    });
    await server.train('s', 1, saveWeights());
    await server.train('s', 2, saveWeights());
    await server.request('DELETE', path(2));
    expect((await server.request('GET', '/v1/registry/groups')).body.groups).toMatchObject([
      { name: 'mine', description: 'for the bench', tags: { owner: 'me' }, versions: 0, latest: null },
      { name: group, versions: 1, latest: 1 },
    ]);
    const changed = await server.request('PATCH', '/v1/registry/groups/mine', {
      description: 'old',
      tags: { owner: null },
    });
    expect(changed.body).toMatchObject({ description: 'old', tags: {} });
    expect(await server.request('PATCH', '/v1/registry/groups/none', {})).toMatchObject({ status: 404 });
    const { body } = await server.control('ListModelPackageGroups', {
      SortBy: 'Name',
      SortOrder: 'Descending',
      MaxResults: 1,
    });
    expect(body).toMatchObject({ ModelPackageGroupSummaryList: [{ ModelPackageGroupName: group }], NextToken: '1' });
  });
});

describe('the end of a version', () => {
  it('shows: expiry before and after, deletion, and what came of it stays told when the files are gone', async () => {
    const clock = new ManualClock();
    const server = await started({ clock });
    await server.train('s', 1, saveWeights(60));
    await server.train('s', 2, saveWeights(60));
    await server.train('s', 3, saveWeights());
    const expiresAtMs = clock.now() + 60_000;
    expect(await described(server, 1)).toMatchObject({ state: 'available', expiresAtMs });
    const summary = (await server.control('ListModelPackages', { SortOrder: 'Ascending' })).body;
    expect(summary.ModelPackageSummaryList).toMatchObject([
      { Loopwright: { ExpirationTime: expiresAtMs / 1000 } },
      {},
      { Loopwright: { VersionKind: 'sampler' } },
    ]);
    // Kept for good, it does not end with the others.
    await server.request('PATCH', path(2), { expiresAtMs: null });
    await server.request('DELETE', path(3));
    clock.advance(60_000);
    await server.sweep();
    expect(await listed(server)).toEqual([2]);
    expect(await listed(server, '?ended=true')).toEqual([3, 2, 1]);
    expect(await described(server, 1)).toMatchObject({ state: 'expired', expiresAtMs, files: [] });
    expect(await described(server, 3)).toMatchObject({ state: 'deleted', deletedAtMs: expect.any(Number), files: [] });
    for (const [number, why] of [
      [1, 'it has expired'],
      [3, 'it was deleted'],
    ] as const) {
      const refused = await server.request('PATCH', path(number), { description: 'late' });
      expect(refused).toMatchObject({ status: 404, body: { details: { got: expect.stringContaining(why) } } });
    }
  });

  it('moves no other version to another page', async () => {
    const server = await started();
    for (let number = 1; number <= 5; number++) await server.train('s', number, saveWeights());
    const first = await server.request('GET', '/v1/registry/versions?limit=2');
    await server.train('s', 6, saveWeights());
    await server.request('DELETE', path(5));
    const { next } = first.body as { next: string };
    expect(await listed(server, `?limit=9&after=${encodeURIComponent(next)}`)).toEqual([3, 2, 1]);
    expect(await server.request('GET', '/v1/registry/versions?after=x')).toMatchObject({ status: 400 });
  });
});

describe('lineage', () => {
  const lineage = async (server: TestServer, number: number) => (await described(server, number)).lineage as Body;

  it('says session, step and parent, and what the steps since then were computed from', async () => {
    const server = await started();
    await server.train('s', 1, saveWeights());
    expect(await lineage(server, 1)).toMatchObject({
      sessionName: 's',
      step: 0,
      parent: null,
      data: { digest: null, passes: 0, datums: 0, tokens: 0 },
    });
    await server.train('s', 2, pass([5, 6, 7]));
    await server.train('s', 3, pass([9], 'forward')); // computes no gradient
    await server.train('s', 4, pass([8, 9]));
    await server.train('s', 5, saveState); // no step has used them yet
    await server.train('s', 6, step());
    await server.train('s', 7, pass([1, 2, 3, 4]));
    await server.train('s', 8, saveState);
    expect((await lineage(server, 2)).data).toMatchObject({ passes: 0 });
    const trained = { passes: 2, datums: 2, tokens: 5, digest: expect.stringMatching(/^[0-9a-f]{64}$/) };
    expect(await lineage(server, 3)).toMatchObject({ step: 1, data: trained });
    await server.train('s', 9, step());
    await server.train('s', 10, saveState);
    expect((await lineage(server, 4)).data).toMatchObject({ passes: 3, tokens: 9 });

    // A child begins to count anew, and the parent stays named when it is gone.
    await server.createSession('child');
    await server.train('child', 1, { type: 'load-state', version: `${group}/3`, loadOptimizer: true });
    await server.train('child', 2, pass([1, 2, 3, 4]));
    await server.train('child', 3, step());
    await server.train('child', 4, saveState);
    await server.request('DELETE', path(3));
    await server.sweep();
    expect(await lineage(server, 5)).toMatchObject({ parent: arn(3), step: 2, data: { passes: 1, tokens: 4 } });
    expect(await described(server, 3)).toMatchObject({ state: 'deleted', lineage: { data: trained } });
  });

  it('has the same digest for the same data in the same order, however often one saves between, and leaves out what failed', async () => {
    const server = await started();
    const digest = async (number: number) => ((await lineage(server, number)).data as Body).digest;
    await server.createSession('t');
    for (const [i, tokens] of [[1, 2], [3, 4], [5]].entries()) {
      await server.train('s', 2 * i + 1, pass(tokens));
      await server.train('s', 2 * i + 2, step());
    }
    await server.train('s', 7, saveState);
    let number = 1;
    for (const tokens of [[1, 2], [3, 4], [5]]) {
      await server.train('t', number++, saveWeights(60));
      await server.train('t', number++, pass(tokens));
      await server.train('t', number++, step());
      await server.train('t', number++, saveWeights(60));
    }
    expect(await digest(1)).toBe(await digest(7));
    // A pass whose step failed because another pass did: neither is in the weights.
    await server.train('t', number++, pass([7]));
    server.engine.failNext('pass', new LoopwrightError({ code: 'operation_failed', message: 'no' }));
    expect((await server.train('t', number++, pass([8]))).status).toBe('Failed');
    expect((await server.train('t', number++, step())).loopwright?.error?.code).toBe('gradient_incomplete');
    await server.train('t', number++, saveState);
    expect(await digest(8)).toBe(await digest(7));
  });
});
