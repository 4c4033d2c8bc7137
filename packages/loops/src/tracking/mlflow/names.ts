/** Names and values as an MLflow server takes them. */
import type { JsonValue } from '../../data/row.js';

/** Of names; MLflow 3 takes 250 characters of metrics and params, and stores 6000 of a param's value and 8000 of a tag's. Older servers take less of values. */
const maxName = 250;
export const maxParam = 6000;
export const maxTag = 5000;

/** A name of letters, digits and `_ - . : / ` with space, and no path out of its folder. Others become `_`. */
export function nameFor(name: string, { colons = true }: { readonly colons?: boolean } = {}): string {
  const plain = name.replace(colons ? /[^\w\-.:/ ]/g : /[^\w\-./ ]/g, '_');
  const parts = plain.split('/').filter((part) => part !== '' && part !== '.' && part !== '..');
  return parts.length === 0 ? '_' : parts.join('/').slice(0, maxName);
}

/** Every leaf of the settings, and every empty object or list, by its path, such as `loss.beta`. */
export function paramsOf(value: JsonValue, path = ''): [string, string][] {
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  if (entries.length > 0)
    return entries.flatMap(([key, inner]) => paramsOf(inner as JsonValue, path === '' ? key : `${path}.${key}`)); // true: members of JSON are JSON
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return [[path === '' ? 'config' : nameFor(path), cut(text, maxParam)]];
}

/** With a mark where something is missing. */
export function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}
