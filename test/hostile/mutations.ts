/** Requests changed as no client would: trees of JSON, text, paths, headers, methods. Everything is drawn by fast-check, so that a seed repeats it. */
import fc from 'fast-check';
import type { RecordedRequest } from './requests.js';

/** A request as it goes over the socket. */
export interface HostileRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

const values: readonly unknown[] = [
  ...[null, true, false, '', 'a', [], {}, [[]], [null], { a: 1 }],
  ...[0, -0, -1, 1, 0.5, -1e-300, 1e308, 2 ** 31, 2 ** 31 - 1, -(2 ** 31), 2 ** 53, 2 ** 63, 1e21],
  ...['NaN', 'Infinity', '-Infinity', 'null', '0', '1e999', '\u0000', '\ud800', '\u202e', '🙂'.repeat(40)],
  ...[
    '../../../../etc/passwd',
    '..',
    '/',
    '/etc/passwd',
    'C:\\windows',
    '%2e%2e%2f',
    'a/../b',
    '~root',
    '.',
    'con',
    '-rf',
  ],
  ...[
    "'; DROP TABLE operations; --",
    '{{ 7*7 }}',
    '<img src=x onerror=alert(1)>',
    '\u001b[2J',
    '__proto__',
    'constructor',
  ],
  ...[
    'arn:aws:sagemaker:us-west-2:000000000000:model-package/../../x/1',
    `arn:${'a:'.repeat(500)}`,
    'a'.repeat(70_000),
  ],
  ...[new Array(3000).fill(1), new Array(200).fill('a'), { __proto__x: 1, toString: 1, hasOwnProperty: null }],
];
/** Put into the text, where JSON has no way to say them. */
const texts = [
  'NaN',
  '-Infinity',
  '1e999',
  '-0.0',
  '00',
  '"\\u0000"',
  '{"__proto__":{"a":1}}',
  '{"a":1,"a":2}',
  `${'['.repeat(70)}${']'.repeat(70)}`,
];
const segments = [
  ...[
    '..',
    '.',
    '%2e%2e',
    '..%2f..%2f..%2fetc%2fpasswd',
    '%2fetc%2fpasswd',
    '%00',
    'a%00b',
    '%',
    '%zz',
    '%ff',
    '%c0%ae',
    '',
  ],
  ...[
    'a'.repeat(3000),
    '%F0%9F%99%82',
    "'%20OR%201=1",
    '__proto__',
    'constructor',
    '*',
    ':name',
    'a;b',
    'a%5cb',
    'a%3fb',
    '-1',
  ],
];
const headerValues = [
  '',
  ' ',
  '-1',
  '0',
  '51',
  '1e3',
  'NaN',
  'a'.repeat(4000),
  '\u00ff\u00fe',
  '"',
  'text/plain',
  'gzip',
  '../..',
  'SageMaker.',
  'bytes=0-',
];
const headerNames = [
  'content-type',
  'x-amz-target',
  'x-loopwright-wait-seconds',
  'x-loopwright-trainer',
  'x-loopwright-client-token',
  'x-request-id',
];
const moreHeaderNames = [
  'x-amzn-sagemaker-model-package',
  'content-encoding',
  'accept',
  'range',
  'if-none-match',
  'origin',
  'authorization',
  'x-forwarded-host',
];

type Mutation =
  | { readonly type: 'value'; readonly at: number; readonly value: unknown }
  | { readonly type: 'drop' | 'repeat' | 'rename' | 'swap'; readonly at: number }
  | { readonly type: 'text'; readonly at: number; readonly text: string }
  | { readonly type: 'cut'; readonly at: number }
  | { readonly type: 'bytes'; readonly at: number; readonly bytes: Uint8Array }
  | { readonly type: 'segment'; readonly at: number; readonly segment: string }
  | { readonly type: 'query'; readonly query: string }
  | { readonly type: 'header'; readonly name: string; readonly value: string }
  | { readonly type: 'no-header'; readonly at: number }
  | { readonly type: 'method'; readonly method: string }
  | { readonly type: 'body'; readonly value: unknown };

const place = fc.nat({ max: 1_000_000 });
const anyValue = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...values) },
  fc.json({ maxDepth: 3 }).map((text) => JSON.parse(text) as unknown),
);

const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  { weight: 10, arbitrary: fc.record({ type: fc.constant('value' as const), at: place, value: anyValue }) },
  {
    weight: 4,
    arbitrary: fc.record({ type: fc.constantFrom('drop', 'repeat', 'rename', 'swap' as const), at: place }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant('text' as const), at: place, text: fc.constantFrom(...texts) }),
  },
  fc.record({ type: fc.constant('cut' as const), at: place }),
  fc.record({ type: fc.constant('bytes' as const), at: place, bytes: fc.uint8Array({ minLength: 1, maxLength: 8 }) }),
  {
    weight: 3,
    arbitrary: fc.record({ type: fc.constant('segment' as const), at: place, segment: fc.constantFrom(...segments) }),
  },
  fc.record({
    type: fc.constant('query' as const),
    query: fc.constantFrom(
      '?',
      '?by=session',
      '?by[]=1&by=2',
      '?from=-1',
      '?from=1e999',
      '?from=%00',
      '?a=%ff%fe',
      `?${'a=1&'.repeat(900)}`,
      '?stream=true',
      '?to=NaN&by=__proto__',
    ),
  }),
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('header' as const),
      name: fc.constantFrom(...headerNames, ...moreHeaderNames),
      value: fc.constantFrom(...headerValues),
    }),
  },
  fc.record({ type: fc.constant('no-header' as const), at: place }),
  fc.record({
    type: fc.constant('method' as const),
    method: fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'OPTIONS', 'PATCH'),
  }),
  fc.record({ type: fc.constant('body' as const), value: anyValue }),
);

/** A request of the recording, and what is done to it. */
export interface Attack {
  readonly index: number;
  readonly mutations: readonly Mutation[];
}

export function attacks(requests: number): fc.Arbitrary<Attack> {
  return fc.record({
    index: fc.nat({ max: requests - 1 }),
    mutations: fc.array(mutation, { minLength: 1, maxLength: 3 }),
  });
}

export function mutate(request: RecordedRequest, mutations: readonly Mutation[]): HostileRequest {
  let { method, path } = request;
  let body = request.body;
  const headers: Record<string, string> = { ...request.headers };
  let bytes: Buffer | undefined;
  const text = () => bytes?.toString('latin1') ?? Buffer.from(JSON.stringify(body) ?? '').toString('latin1');
  for (const change of mutations) {
    switch (change.type) {
      case 'value':
      case 'drop':
      case 'repeat':
      case 'rename':
      case 'swap':
        body = changeTree(body, change);
        break;
      case 'body':
        body = change.value;
        break;
      case 'text':
        bytes = Buffer.from(withText(text(), change.at, change.text), 'latin1');
        break;
      case 'cut':
        bytes = Buffer.from(text().slice(0, change.at % (text().length + 1)), 'latin1');
        break;
      case 'bytes': {
        const whole = text();
        const at = change.at % (whole.length + 1);
        bytes = Buffer.concat([
          Buffer.from(whole.slice(0, at), 'latin1'),
          change.bytes,
          Buffer.from(whole.slice(at), 'latin1'),
        ]);
        break;
      }
      case 'segment': {
        const parts = path.split('/');
        parts[1 + (change.at % parts.length)] = change.segment;
        path = parts.map((part) => part ?? '').join('/');
        break;
      }
      case 'query':
        path = path.split('?')[0] + change.query;
        break;
      case 'header':
        headers[change.name] = change.value;
        break;
      case 'no-header':
        delete headers[Object.keys(headers)[change.at % Math.max(1, Object.keys(headers).length)] ?? ''];
        break;
      case 'method':
        method = change.method;
        break;
      default:
        change satisfies never;
    }
  }
  const sent = bytes ?? (body === undefined ? undefined : Buffer.from(JSON.stringify(body)));
  return { method, path, headers, ...(sent === undefined ? {} : { body: sent }) };
}

type Container = unknown[] | Record<string, unknown>;

/** A copy in which one place is another. */
function changeTree(body: unknown, change: Mutation & { readonly at: number }): unknown {
  const copy: unknown = body === undefined ? {} : structuredClone(body);
  const places: [Container, string][] = [];
  const visit = (node: unknown) => {
    if (typeof node !== 'object' || node === null) return;
    for (const key of Object.keys(node)) {
      places.push([node as Container, key]); // true: an object or array
      visit(Reflect.get(node, key));
    }
  };
  visit(copy);
  const [node, key] = places[change.at % Math.max(1, places.length)] ?? [undefined, ''];
  if (node === undefined) return change.type === 'value' ? change.value : copy;
  const value: unknown = Reflect.get(node, key);
  if (change.type === 'value') Reflect.set(node, key, change.value);
  else if (change.type === 'drop')
    Array.isArray(node) ? node.splice(Number(key), 1) : Reflect.deleteProperty(node, key);
  else if (change.type === 'repeat') Reflect.set(node, key, new Array(300).fill(value));
  else if (change.type === 'rename') Reflect.set(node, `${key}X`, value);
  else Reflect.set(node, key, typeof value === 'number' ? String(value) : { [key]: value });
  return copy;
}

/** JSON text with a number or string replaced by what JSON.stringify never writes. */
function withText(text: string, at: number, replacement: string): string {
  const found = [...text.matchAll(/-?\d+(\.\d+)?|"[^"]*"/g)];
  const match = found[at % Math.max(1, found.length)];
  return match === undefined
    ? replacement
    : text.slice(0, match.index) + replacement + text.slice(match.index + match[0].length);
}
