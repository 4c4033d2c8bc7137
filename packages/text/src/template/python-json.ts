/** `json.dumps` as Python writes it: what `tojson` means in chat templates. */

export interface PythonJsonOptions {
  /** Spaces a level, or the text itself; absent writes one line. */
  readonly indent?: number | string;
  /** [between items, after a key]; by default `, ` (`,` when indented) and `: `. */
  readonly separators?: readonly [string, string];
  readonly sortKeys?: boolean;
  readonly ensureAscii?: boolean;
}

/** Values as the template engine holds them, unwrapped. A `Map` keeps the order of integer-like keys, an object does not. */
export type PythonValue =
  | null
  | undefined
  | boolean
  | string
  | { readonly float: number }
  /** A number as it was written. */
  | { readonly exact: string }
  | number
  | readonly PythonValue[]
  | ReadonlyMap<string, PythonValue>;

/**
 * A float as `repr` prints it: `1e-07` where JavaScript says `1e-7`, and `0.00001` becomes `1e-05`, `1e16` `1e+16`.
 * Whole floats keep their `.0`.
 */
export function pythonFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'Infinity' : '-Infinity';
  if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0';
  const [mantissa = '', power = '0'] = value.toExponential().split('e');
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 16) {
    return `${mantissa}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
  }
  const sign = mantissa.startsWith('-') ? '-' : '';
  const digits = mantissa.replace(/[-.]/g, '');
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0');
  return `${sign}${whole}.${digits.slice(exponent + 1) || '0'}`;
}

/** Whole numbers print as integers (JSON parsing can't tell 1.0 from 1) up to where JavaScript itself takes an exponent. */
export function pythonInteger(value: number): string {
  return Math.abs(value) < 1e21 ? String(value) : pythonFloat(value);
}

function quote(text: string, ensureAscii: boolean): string {
  const quoted = JSON.stringify(text);
  if (!ensureAscii) return quoted;
  return quoted.replace(/[\u007f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Compares by code point, as Python sorts strings. */
function byCodePoint(left: string, right: string): number {
  const a = Array.from(left, (char) => char.codePointAt(0) ?? 0);
  const b = Array.from(right, (char) => char.codePointAt(0) ?? 0);
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** Writes `value` as `json.dumps(value, ensure_ascii=False)` does, with the options of that function. Undefined is null. */
export function pythonJson(value: PythonValue, options: PythonJsonOptions = {}, depth = 0): string {
  const { indent, sortKeys = false, ensureAscii = false } = options;
  const [itemSeparator, keySeparator] = options.separators ?? [indent === undefined ? ', ' : ',', ': '];
  if (value === null || value === undefined) return 'null';
  if (typeof value === 'boolean') return String(value);
  if (typeof value === 'number') return pythonInteger(value);
  if (typeof value === 'string') return quote(value, ensureAscii);
  if ('float' in value) return pythonFloat(value.float);
  if ('exact' in value) return value.exact;
  const pad = typeof indent === 'number' ? ' '.repeat(indent) : indent;
  const block = (open: string, close: string, items: readonly string[]): string => {
    if (items.length === 0) return open + close;
    if (pad === undefined) return open + items.join(itemSeparator) + close;
    const inner = `\n${pad.repeat(depth + 1)}`;
    return `${open}${inner}${items.join(itemSeparator + inner)}\n${pad.repeat(depth)}${close}`;
  };
  if (value instanceof Map) {
    const entries = [...(value as ReadonlyMap<string, PythonValue>)]; // true: the only map of the union
    if (sortKeys) entries.sort(([left], [right]) => byCodePoint(left, right));
    return block(
      '{',
      '}',
      entries.map(([key, item]) => quote(key, ensureAscii) + keySeparator + pythonJson(item, options, depth + 1)),
    );
  }
  const items = value as readonly PythonValue[]; // true: all other members of the union are gone
  return block(
    '[',
    ']',
    items.map((item) => pythonJson(item, options, depth + 1)),
  );
}
