/** Where two values differ, bit for bit, and by how much: results, plans, operations. Nothing of what tokens or texts say is told. */

type Told = number | string | boolean | null;

export interface FieldDifference {
  /** Such as `outputs[0].logprobs[3]`. */
  readonly path: string;
  /** What is in either; null where a side has no such field. Both are left out where they are content: tokens, texts. */
  readonly values?: readonly [Told, Told];
  /** |a − b|, where both are finite numbers. */
  readonly size?: number;
}

export interface ValueDifference {
  /** In the order of the fields. */
  readonly first: FieldDifference;
  /** How many values differ; an array of another length counts as one. */
  readonly count: number;
  /** Largest |a − b| by field, indices left out, such as `outputs[].logprobs`. */
  readonly largest: Readonly<Record<string, number>>;
}

export interface CompareOptions {
  /** Fields that only the second has are no difference: a newer release may tell more. */
  readonly ignoreAdded?: boolean;
}

/** Fields whose values are content, in operations and results: they are compared, and not told. */
const content = new Set(['modelInput', 'targetTokens', 'prompt', 'tokens', 'tokenId', 'stop', 'stopTokenIds']);

type Numbers = Float32Array | Int32Array;

/** Undefined when both have the same bits: NaN equals itself, and 0 differs from −0. */
export function differenceOf(a: unknown, b: unknown, options: CompareOptions = {}): ValueDifference | undefined {
  const found = new Found();
  walk([a, b], { path: '', isContent: false, found, ignoreAdded: options.ignoreAdded ?? false });
  return found.difference();
}

class Found {
  #first: FieldDifference | undefined;
  #count = 0;
  readonly #largest = new Map<string, number>();

  add(difference: FieldDifference, count = 1): void {
    this.#first ??= difference;
    this.#count += count;
  }

  /** Notes a size for its field, whether it is the first that differs or not. */
  size(path: string, size: number): void {
    const group = path.replace(/\[\d+\]/g, '[]').replace(/\[\]$/, '');
    this.#largest.set(group, Math.max(this.#largest.get(group) ?? 0, size));
  }

  difference(): ValueDifference | undefined {
    if (this.#first === undefined) return undefined;
    return { first: this.#first, count: this.#count, largest: Object.fromEntries(this.#largest) };
  }
}

interface Place {
  readonly path: string;
  readonly isContent: boolean;
  readonly found: Found;
  readonly ignoreAdded: boolean;
}

function walk([a, b]: readonly [unknown, unknown], place: Place): void {
  if (isNumbers(a) && isNumbers(b)) arrays(a, b, place);
  else if (Array.isArray(a) && Array.isArray(b)) {
    if (a.length !== b.length) leaf(a.length, b.length, { ...place, path: `${place.path}.length` });
    for (let i = 0; i < Math.min(a.length, b.length); i++)
      walk([a[i], b[i]], { ...place, path: `${place.path}[${i}]` });
  } else if (isRecord(a) && isRecord(b)) {
    for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
      if (place.ignoreAdded && a[key] === undefined) continue;
      const path = place.path === '' ? key : `${place.path}.${key}`;
      walk([a[key], b[key]], { ...place, path, isContent: place.isContent || content.has(key) });
    }
  } else if (!Object.is(a, b)) leaf(a, b, place);
}

function leaf(a: unknown, b: unknown, { path, isContent, found }: Place): void {
  const size = typeof a === 'number' && typeof b === 'number' && !isContent ? Math.abs(a - b) : Number.NaN;
  const isLength = path.endsWith('.length');
  const values = isContent && !isLength ? {} : { values: [told(a), told(b)] as const };
  if (!Number.isFinite(size)) found.add({ path, ...values });
  else {
    found.add({ path, ...values, size });
    if (!isLength) found.size(path, size);
  }
}

/** Compares bits; tells the first element that differs, and the largest distance of any. */
function arrays(a: Numbers, b: Numbers, place: Place): void {
  const { path, found } = place;
  if (a.constructor !== b.constructor || a.length !== b.length) {
    leaf(a.length, b.length, { ...place, path: `${path}.length` });
    return;
  }
  const { count, first, largest } = distance(a, b);
  if (first === undefined) return;
  const at = `${path}[${first}]`;
  if (place.isContent) {
    found.add({ path: at }, count);
    return;
  }
  const size = Math.abs(a[first]! - b[first]!);
  found.add({ path: at, values: [a[first]!, b[first]!], ...(Number.isFinite(size) ? { size } : {}) }, count);
  found.size(path, largest);
}

export interface Distance {
  /** Elements whose bits differ. */
  readonly count: number;
  readonly first: number | undefined;
  /** Largest |a − b|; elements where it is not finite are left out. */
  readonly largest: number;
  /** Where that is. */
  readonly at: number;
}

/** Of two arrays of one kind and length. */
export function distance(a: Numbers, b: Numbers): Distance {
  const [x, y] = [bits(a), bits(b)];
  let [count, largest, at] = [0, 0, 0];
  let first: number | undefined;
  for (let i = 0; i < x.length; i++) {
    if (x[i] === y[i]) continue;
    first ??= i;
    count += 1;
    const size = Math.abs(a[i]! - b[i]!);
    if (size > largest && size < Number.POSITIVE_INFINITY) [largest, at] = [size, i];
  }
  return { count, first, largest, at };
}

function bits({ buffer, byteOffset, length }: Numbers): Uint32Array {
  return new Uint32Array(buffer, byteOffset, length);
}

function isNumbers(value: unknown): value is Numbers {
  return value instanceof Float32Array || value instanceof Int32Array;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isNumbers(value);
}

function told(value: unknown): Told {
  if (value === undefined || value === null) return null;
  if (typeof value === 'number' || typeof value === 'string' || typeof value === 'boolean') return value;
  return isNumbers(value) || Array.isArray(value) ? `a list of ${value.length}` : 'an object';
}
