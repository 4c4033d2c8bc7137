/** The guest's side: what a program finds beside the language, and how values cross. */

/** `encode` and `decode`: values as JSON with tags. */
export const javascriptValues = `const encode = (value, depth = 0) => {
    const below = (item) => encode(item, depth + 1);
    if (depth > 150) throw new RangeError('more than 150 levels, or a cycle');
    if (value === undefined || value === null) return null;
    if (typeof value === 'boolean' || typeof value === 'string') return value;
    if (typeof value === 'number') {
      if (Number.isFinite(value)) return value;
      return { float: value !== value ? 'nan' : value > 0 ? 'inf' : '-inf' };
    }
    if (typeof value === 'bigint') return { int: String(value) };
    if (typeof value !== 'object') throw new TypeError('a ' + typeof value + ' can not be returned as a value');
    if (Array.isArray(value)) return Array.from(value, below);
    if (value instanceof Uint8Array) return { bytes: Array.from(value, (b) => b.toString(16).padStart(2, '0')).join('') };
    if (value instanceof Set) return { set: [...value].map(below) };
    if (value instanceof Map) return { dict: [...value].map((pair) => pair.map(below)) };
    return { dict: Object.entries(value).map(([key, item]) => [key, below(item)]) };
  };
  const decode = (value) => {
    if (Array.isArray(value)) return value.map(decode);
    if (typeof value !== 'object' || value === null) return value;
    const [[tag, content]] = Object.entries(value);
    if (tag === 'int') return BigInt(content);
    if (tag === 'float') return Number(content.replace('inf', 'Infinity'));
    if (tag === 'bytes') return Uint8Array.from(content.match(/../g) || [], (pair) => parseInt(pair, 16));
    if (tag === 'set') return new Set(content.map(decode));
    const pairs = content.map((pair) => pair.map(decode));
    return pairs.every(([key]) => typeof key === 'string') ? Object.fromEntries(pairs) : new Map(pairs);
  };`;

/**
 * A function of the host's `write(fd, text)`, standard input and files by name. Sets the globals of a small shell (`console`, `print`,
 * `readline`, `require('fs').readFileSync`) and returns how values cross, as text.
 */
export const javascriptPrelude = `(write, stdin, filesText) => {
  const { parse, stringify } = JSON;
  const files = new Map(Object.entries(parse(filesText)));
  let at = 0;
  const shown = (value, depth = 0) => {
    if (typeof value === 'string') return depth === 0 ? value : stringify(value);
    if (typeof value === 'bigint') return value + 'n';
    if (value instanceof Error) return String(value.stack || value);
    if (typeof value !== 'object' || value === null || depth > 4) return String(value);
    if (Array.isArray(value)) return '[ ' + value.map((item) => shown(item, depth + 1)).join(', ') + ' ]';
    if (value instanceof Map) return 'Map(' + value.size + ') ' + shown([...value], depth + 1);
    if (value instanceof Set) return 'Set(' + value.size + ') ' + shown([...value], depth + 1);
    return '{ ' + Object.entries(value).map(([key, item]) => key + ': ' + shown(item, depth + 1)).join(', ') + ' }';
  };
  const line = (fd) => (...values) => write(fd, values.map((value) => shown(value)).join(' ') + '\\n');
  const [out, err] = [line(1), line(2)];
  globalThis.console = { log: out, info: out, debug: out, error: err, warn: err };
  globalThis.print = out;
  globalThis.readline = () => {
    if (at >= stdin.length) return null;
    const found = stdin.indexOf('\\n', at);
    const end = found < 0 ? stdin.length : found;
    const text = stdin.slice(at, end);
    at = end + 1;
    return text;
  };
  const readFileSync = (name) => {
    if (name === 0 || name === '/dev/stdin') {
      const rest = stdin.slice(at);
      at = stdin.length;
      return rest;
    }
    if (!files.has(String(name))) throw new Error('ENOENT: no such file ' + name);
    return files.get(String(name));
  };
  globalThis.require = (name) => {
    if (name === 'fs' || name === 'node:fs') return { readFileSync };
    throw new Error('Cannot find module ' + name);
  };

  ${javascriptValues}
  return { call: (f, args) => f(...decode(parse(args))), encode: (value) => stringify(encode(value)) };
}`;
