/** `loopwright diff`: the first operation in which two recorded sessions differ, and how. */
import { createHash } from 'node:crypto';
import type { ExecutionPlan } from '@loopwright/engine';
import { asLoopwrightError, LoopwrightError, type Operation, type VersionId } from '@loopwright/protocol';
import type { Manifest } from '../blobs/blob-store.js';
import type { OperationRecord, SamplingRecord, TrainingRecord } from '../operations/operation-record.js';
import { encodeOperation } from '../operations/payload-codec.js';
import type { SessionRecord } from '../sessions/session-record.js';
import { differenceOf, type FieldDifference } from './differences.js';
import { type Finding, fieldDifferences, type OperationRef, outcomeText, planDifferences, refOf } from './findings.js';
import { openRecordedData, type RecordedData, sessionOf } from './recorded-data.js';
import { placeOf, savesOf, type Turn, timelineOf } from './timeline.js';
import { type WeightsDifference, weightsDifference } from './weights-difference.js';

export interface RunLocation {
  /** That no server works on; it is only read. */
  readonly dataDir: string;
  /** Needed where there are several. */
  readonly session?: string;
}

export interface RunComparison {
  /** Names of the sessions. */
  readonly sessions: readonly [string, string];
  /** No operation differs, nor what the sessions were created with; plans may. */
  readonly same: boolean;
  /** Fields of the execution plans that differ: bits are promised under one plan only. */
  readonly plan: readonly FieldDifference[];
  /** Fields of what the sessions were created with (base model, adapter, seed) that differ. */
  readonly creation: readonly FieldDifference[];
  /** The first operation that differs. */
  readonly first?: ComparedOperation;
  /** The first saved version, at that operation or behind it, whose files differ. */
  readonly weights?: { readonly operation: OperationRef; readonly difference: WeightsDifference };
  /** Operations that were compared, up to the first that differs. */
  readonly compared: number;
}

export interface ComparedOperation extends OperationRef {
  /** Its id in the second run; null where that has none. */
  readonly otherId: string | null;
  readonly findings: readonly Finding[];
}

/**
 * Compares two recorded sessions, operation by operation.
 *
 * @throws `invalid_argument`, `unknown_session`, `data_dir_in_use`
 */
export async function compareRuns(a: RunLocation, b: RunLocation): Promise<RunComparison> {
  await using left = await openRecordedData(a.dataDir);
  await using right = await openRecordedData(b.dataDir);
  const sides = [await sideOf(left, a.session), await sideOf(right, b.session)] as const;
  const sessions = sides.map(({ session }) => session) as [SessionRecord, SessionRecord]; // true: of two
  const plan = plansDifference(sessions[0].plan, sessions[1].plan);
  const [one, other] = sessions.map(({ spec: { baseModel, seed, training } }) => ({ baseModel, seed, ...training }));
  const creation = fieldDifferences(one!, other!);
  let compared = 0;
  for await (const pair of pairs(sides)) {
    const findings = await findingsOf(pair, sides);
    if (findings.length === 0) {
      compared += 1;
      continue;
    }
    const shown = pair.records[0] ?? pair.records[1]!; // true: a pair has one of them
    const first = { ...refOf(shown, pair.place), otherId: pair.records[1]?.id ?? null, findings };
    const weights = await firstWeights(sides, pair.turn);
    return {
      ...{ sessions: [sessions[0].name, sessions[1].name], same: false, plan, creation, first, compared },
      ...(weights && { weights }),
    };
  }
  const same = creation.length === 0;
  return { sessions: [sessions[0].name, sessions[1].name], same, plan, creation, compared };
}

function plansDifference(a: ExecutionPlan | null, b: ExecutionPlan | null): FieldDifference[] {
  return a === null || b === null ? fieldDifferences(a ?? {}, b ?? {}) : planDifferences(a, b);
}

interface Side {
  readonly data: RecordedData;
  readonly session: SessionRecord;
  readonly turns: readonly Turn[];
  /** What a version is called in both runs: by the operation that saved it, or by its files. */
  readonly versionName: (version: VersionId) => Promise<string>;
}

async function sideOf(data: RecordedData, name: string | undefined): Promise<Side> {
  const session = sessionOf(data, name);
  const records = await data.log.ofSession(session.id);
  const saves = savesOf(records.filter((record) => record.kind === 'training'));
  const versionName = async (version: VersionId) => {
    const save = saves.get(version);
    if (save !== undefined) return `saved by operation ${save.sequenceNumber}`;
    const files = await data.registry.files(session.workspaceId, version);
    return files.length === 0 ? `version ${version}` : `files ${shortHash(JSON.stringify(files.map(named)))}`;
  };
  return { data, session, turns: timelineOf(records), versionName };
}

interface Pair {
  readonly place: string;
  readonly turn: number;
  readonly records: readonly [OperationRecord | undefined, OperationRecord | undefined];
}

/** Operations of both in order: training by its place, sampling by its inputs, since programs send samples at once and in any order. */
async function* pairs(sides: readonly [Side, Side]): AsyncGenerator<Pair> {
  const [left, right] = sides;
  for (let turn = 0; turn < Math.max(left.turns.length, right.turns.length); turn++) {
    const [a, b] = [left.turns[turn], right.turns[turn]];
    const shown = a ?? b!; // true: one of them is as long
    if (turn > 0) yield { place: placeOf(shown), turn, records: [a?.training, b?.training] };
    const matched = await matchSampling(sides, [a?.sampling ?? [], b?.sampling ?? []]);
    for (const [index, records] of matched.entries()) yield { place: placeOf(shown, index), turn, records };
  }
}

type SamplingPair = readonly [SamplingRecord | undefined, SamplingRecord | undefined];

async function matchSampling(
  sides: readonly [Side, Side],
  [a, b]: readonly [readonly SamplingRecord[], readonly SamplingRecord[]],
): Promise<SamplingPair[]> {
  const waiting = new Map<string, SamplingRecord[]>();
  for (const record of b) {
    const key = await inputsHash(sides[1], record);
    waiting.set(key, [...(waiting.get(key) ?? []), record]);
  }
  const partners = new Map<SamplingRecord, SamplingRecord>();
  for (const record of a) {
    const partner = waiting.get(await inputsHash(sides[0], record))?.shift();
    if (partner !== undefined) partners.set(record, partner);
  }
  const taken = new Set(partners.values());
  const rest = b.filter((record) => !taken.has(record));
  const matched: SamplingPair[] = a.map((record) => [record, partners.get(record) ?? rest.shift()]);
  return [...matched, ...rest.map((record): SamplingPair => [undefined, record])];
}

async function findingsOf({ records }: Pair, sides: readonly [Side, Side]): Promise<Finding[]> {
  const [a, b] = records;
  if (a === undefined || b === undefined || a.type !== b.type)
    return [{ type: 'missing', values: [a?.type ?? null, b?.type ?? null] }];
  const findings = await inputFindings(sides, [a, b]);
  const outcomes = [a, b].map(({ status, error }) => outcomeText({ status, code: error?.code })) as [string, string]; // true: of two
  if (outcomes[0] !== outcomes[1]) return [...findings, { type: 'outcome', values: outcomes }];
  if (a.status !== 'Completed') return findings;
  return [...findings, ...(await resultFindings(sides, [a, b])), ...(await savedFindings(sides, [a, b]))];
}

type Both<T> = readonly [T, T];

async function inputFindings(sides: Both<Side>, [a, b]: Both<OperationRecord>): Promise<Finding[]> {
  const values = [await inputsHash(sides[0], a), await inputsHash(sides[1], b)] as const;
  if (values[0] === values[1]) return [];
  const [one, other] = [await inputsOf(sides[0], a), await inputsOf(sides[1], b)];
  for (const inputs of [one, other]) {
    if (LoopwrightError.isInstance(inputs)) return [{ type: 'damaged', what: 'inputs', message: inputs.message }];
  }
  const difference = differenceOf(one, other);
  return [{ type: 'inputs', values, ...(difference && { difference }) }];
}

async function resultFindings(sides: Both<Side>, [a, b]: Both<OperationRecord>): Promise<Finding[]> {
  // What a save returns is the version's name, which belongs to its run.
  if (a.resultBlob === b.resultBlob || a.type === 'save-state' || a.type === 'save-weights') return [];
  try {
    const one = await sides[0].data.log.result(a);
    const other = await sides[1].data.log.result(b);
    const difference = differenceOf(one.result, other.result);
    return difference === undefined ? [] : [{ type: 'result', difference }];
  } catch (error) {
    return [{ type: 'damaged', what: 'result', message: asLoopwrightError(error).message }];
  }
}

async function savedFindings(sides: Both<Side>, records: Both<OperationRecord>): Promise<Finding[]> {
  const files: Manifest[] = [];
  for (const [index, { resolved }] of records.entries()) {
    const { data, session } = sides[index]!;
    const { version } = resolved;
    files.push(version === undefined ? [] : await data.registry.files(session.workspaceId, version));
  }
  const [one, other] = files as [Manifest, Manifest]; // true: of two
  if (one.length === 0 || other.length === 0) return []; // no save, or gone
  const opener =
    ({ data, session }: Side) =>
    ({ hash }: { readonly hash: string }) =>
      data.blobs.file({ workspaceId: session.workspaceId, hash });
  try {
    const difference = await weightsDifference(
      { manifest: one, open: opener(sides[0]) },
      { manifest: other, open: opener(sides[1]) },
    );
    return difference === undefined ? [] : [{ type: 'weights', difference }];
  } catch (error) {
    return [{ type: 'damaged', what: 'weights', message: asLoopwrightError(error).message }];
  }
}

/** The first saved weights from a turn on that differ. */
async function firstWeights(sides: Both<Side>, from: number): Promise<RunComparison['weights']> {
  for (let turn = Math.max(1, from); turn < sides[0].turns.length; turn++) {
    const [a, b] = [sides[0].turns[turn]!.training, sides[1].turns[turn]?.training];
    if (a === undefined || b === undefined || a.type !== b.type) return undefined;
    for (const finding of await savedFindings(sides, [a, b])) {
      if (finding.type === 'weights')
        return { operation: refOf(a, placeOf(sides[0].turns[turn]!)), difference: finding.difference };
    }
  }
  return undefined;
}

/** What an operation computes from; versions by names that both runs share, without what changes no bit (descriptions, times to live). */
async function inputsOf(side: Side, record: OperationRecord): Promise<object | LoopwrightError> {
  let operation: Operation;
  try {
    operation = await side.data.log.operation(record);
  } catch (error) {
    return asLoopwrightError(error);
  }
  switch (operation.type) {
    case 'save-state':
      return { type: operation.type };
    case 'save-weights':
      return { type: operation.type, merge: operation.merge };
    case 'load-state':
    case 'load-weights':
      return { ...operation, version: await side.versionName(operation.version) };
    case 'sample':
    case 'compute-logprobs': {
      const { weights } = operation;
      return { ...operation, weights: weights.type === 'base' ? 'base' : await side.versionName(weights.id) };
    }
    case 'forward':
    case 'forward-backward':
    case 'optim-step':
      return operation;
    default:
      return operation satisfies never;
  }
}

async function inputsHash(side: Side, record: TrainingRecord | SamplingRecord): Promise<string> {
  const inputs = await inputsOf(side, record);
  if (LoopwrightError.isInstance(inputs)) return `damaged ${record.payloadBlob.slice(0, 16)}`;
  // true: the container holds any plain data
  return shortHash(encodeOperation(inputs as Operation));
}

function named({ path, hash }: { readonly path: string; readonly hash: string }): readonly [string, string] {
  return [path, hash];
}

/** 64 bits are enough to tell the operations of two runs apart, and can be read. */
function shortHash(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('hex').slice(0, 16);
}
