/** Values on the command line, read and checked. */
import { type WireName, wireNames } from '@loopwright/wires';
import { InvalidArgumentError } from 'commander';

/** A whole number within limits, for commander's argument parsers. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Expected a whole number from ${min} to ${max}.`);
  };
}

/** `id=directory`, collected over several uses of the option. */
export function modelArgument(text: string, earlier: Readonly<Record<string, string>> = {}): Record<string, string> {
  const at = text.indexOf('=');
  const [id, directory] = [text.slice(0, at), text.slice(at + 1)];
  if (at < 1 || directory === '')
    throw new InvalidArgumentError('Expected id=directory, such as my-model=./models/my-model.');
  if (id in earlier) throw new InvalidArgumentError(`The id ${id} is given twice.`);
  return { ...earlier, [id]: directory };
}

const sizeUnits: Readonly<Record<string, number>> = { mb: 1e6, gb: 1e9, mib: 2 ** 20, gib: 2 ** 30 };

/** Bytes of a size with its unit, such as `6GB`, `6.5 GiB` or `900MB`. */
export function memorySize(text: string): number {
  const [, amount = '', unit = ''] = /^(\d+(?:\.\d+)?) ?([mg]i?b)$/i.exec(text) ?? [];
  const bytes = Math.floor(Number(amount) * (sizeUnits[unit.toLowerCase()] ?? 0));
  if (bytes > 0) return bytes;
  throw new InvalidArgumentError('Expected a size in MB, GB, MiB or GiB, such as 6GB.');
}

/** Milliseconds since 1970 of a date (midnight, UTC) or a time in the ISO form. */
export function time(text: string): number {
  const ms = /^\d{4}-\d{2}-\d{2}(T|$)/.test(text) ? Date.parse(text) : Number.NaN;
  if (ms >= 0) return ms;
  throw new InvalidArgumentError('Expected a date such as 2026-03-01, or a time such as 2026-03-01T14:05Z.');
}

/** Wires by name, with commas between them. */
export function wiresArgument(text: string): WireName[] {
  return text.split(',').map((part) => {
    const wire = wireNames.find((name) => name === part.trim());
    if (wire === undefined) throw new InvalidArgumentError(`Expected names among ${wireNames.join(',')}.`);
    return wire;
  });
}

/** A time in seconds, such as `0.5`. */
export function seconds(text: string): number {
  const value = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && value > 0 && value <= 86_400) return value;
  throw new InvalidArgumentError('Expected seconds above 0, at most 86400.');
}

/** Names with commas between them; of `known` alone, where that is given. */
export function listOf<T extends string>(known?: readonly T[]): (text: string) => T[] {
  return (text) =>
    text.split(',').map((part) => {
      const name = part.trim();
      if (known === undefined ? name !== '' : known.includes(name as T)) return name as T; // true: it is among them, or any will do
      throw new InvalidArgumentError(
        known === undefined ? 'Expected names.' : `Expected names among ${known.join(',')}.`,
      );
    });
}
