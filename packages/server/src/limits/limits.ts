/** What one server takes at most: the one table, from which its defaults and the page of the guide come. */
import { complaint, samplingRanges } from '@loopwright/protocol';

type Unit = 'bytes' | 'ms' | 'count';

interface LimitRow {
  readonly value: number;
  readonly unit: Unit;
  readonly what: string;
  /** How whoever goes beyond it is answered. */
  readonly beyond: string;
  /** The option of `loopwright serve` that moves it. */
  readonly option?: string;
}

const mebi = 2 ** 20;
const tooMuch = '429 `limit_exceeded` with Retry-After';
const invalid = '400 `invalid_argument`';

/** Limits that a server may be started with others of. Those of fields (names, ranges, patterns) stand in the schemas of their wire. */
export const limitTable = {
  bodyBytes: {
    value: 64 * mebi,
    unit: 'bytes',
    what: 'a request body',
    beyond: '413 `payload_too_large`',
    option: '--max-body',
  },
  signedBodyBytes: {
    value: 16 * mebi,
    unit: 'bytes',
    what: 'a body that must be read before its AWS signature can be checked (no X-Amz-Content-SHA256)',
    beyond: '413 `payload_too_large`',
  },
  bodyMemoryBytes: {
    value: 256 * mebi,
    unit: 'bytes',
    what: 'bodies in memory at once, from their first byte to the answer',
    beyond: `waits; after \`roomWaitMs\` ${tooMuch}`,
  },
  unprovenMemoryBytes: {
    value: 128 * mebi,
    unit: 'bytes',
    what: 'of these, bodies whose signature is not yet checked',
    beyond: `waits; after \`roomWaitMs\` ${tooMuch}`,
  },
  roomWaitMs: { value: 30_000, unit: 'ms', what: 'waiting for room for a body', beyond: tooMuch },
  jsonDepth: { value: 64, unit: 'count', what: 'nesting of JSON', beyond: invalid },
  jsonParts: { value: 1_000_000, unit: 'count', what: 'objects, arrays and strings in a body', beyond: invalid },
  requests: {
    value: 2048,
    unit: 'count',
    what: 'requests at once, held ones included',
    beyond: tooMuch,
    option: '--max-requests',
  },
  connections: { value: 16_384, unit: 'count', what: 'connections at once', beyond: 'the connection is closed' },
  headerBytes: {
    value: 16_384,
    unit: 'bytes',
    what: 'request line and headers',
    beyond: '431, and the connection is closed',
  },
  headerMs: {
    value: 20_000,
    unit: 'ms',
    what: 'from the first byte of a request to the end of its headers',
    beyond: '408, and the connection is closed',
  },
  bodyIdleMs: {
    value: 20_000,
    unit: 'ms',
    what: 'without a byte of a body that is being read',
    beyond: '408 `request_timeout`',
  },
  requestMs: {
    value: 300_000,
    unit: 'ms',
    what: 'from the first byte of a request to the last of its body',
    beyond: '408, and the connection is closed',
  },
  keepAliveMs: {
    value: 65_000,
    unit: 'ms',
    what: 'a connection without a request (5 s, as Node has it, is so short that clients under load send on what was just closed)',
    beyond: 'the connection is closed',
  },
  answerIdleMs: {
    value: 60_000,
    unit: 'ms',
    what: 'without a byte of an answer being taken by the client',
    beyond: 'the connection is closed',
  },
  openOperations: {
    value: 20_000,
    unit: 'count',
    what: 'operations of a session that have not ended',
    beyond: tooMuch,
  },
} as const satisfies Record<string, LimitRow>;

/** Limits that hold everywhere. */
export const fixedLimits = {
  datums: { value: 16_384, unit: 'count', what: 'datums of an operation', beyond: invalid },
  numSamples: {
    value: samplingRanges.numSamples.max,
    unit: 'count',
    what: 'samples of a sampling operation',
    beyond: invalid,
  },
  maxTokens: { value: samplingRanges.maxTokens.max, unit: 'count', what: 'new tokens of a sample', beyond: invalid },
} as const satisfies Record<string, LimitRow>;

export type LimitName = keyof typeof limitTable;
/** In the units of the table. */
export type Limits = Readonly<Record<LimitName, number>>;

/** The table's values, with those that were set. @throws `invalid_argument` for what is no whole number from 0 on */
export function completeLimits(set: Partial<Limits> = {}): Limits {
  const names = Object.keys(limitTable) as LimitName[]; // true: the keys of that table
  for (const name of names) {
    const given = set[name];
    if (given === undefined || (Number.isSafeInteger(given) && given >= 0)) continue;
    throw complaint({ field: `limits.${name}`, expected: 'a whole number from 0 on', got: String(given) });
  }
  return Object.fromEntries(names.map((name) => [name, set[name] ?? limitTable[name].value])) as Limits; // true: every name is there
}

/** The table as a page shows it. */
export function limitLines(): string[] {
  const rows: [string, LimitRow][] = Object.entries({ ...limitTable, ...fixedLimits });
  return [
    '| limit | of | at most | beyond it | option of `serve` |',
    '| --- | --- | --- | --- | --- |',
    ...rows.map(
      ([name, row]) =>
        `| \`${name}\` | ${row.what} | ${shown(row)} | ${row.beyond} | ${row.option === undefined ? '' : `\`${row.option}\``} |`,
    ),
  ];
}

function shown({ value, unit }: LimitRow): string {
  switch (unit) {
    case 'bytes':
      return value >= mebi ? `${value / mebi} MiB` : `${value / 1024} KiB`;
    case 'ms':
      return `${value / 1000} s`;
    case 'count':
      return value.toLocaleString('en');
    default:
      return unit satisfies never;
  }
}
