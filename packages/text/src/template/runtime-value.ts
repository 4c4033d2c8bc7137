/** Data as the template library holds it, with numbers and keys as they were written. */
import { JsonNumber, JsonObject } from './exact-json.js';
import { jinja, type RuntimeValue } from './jinja-library.js';

/** @param value JSON data, or a function that templates may call */
export function runtimeValue(value: unknown): RuntimeValue {
  if (!needsCare(value)) return wrap(value);
  if (value instanceof JsonNumber) return numberValue(value);
  if (Array.isArray(value)) {
    const list = wrap([]);
    (list.value as RuntimeValue[]).push(...value.map(runtimeValue)); // true: the value of a list
    return list;
  }
  const object = wrap({});
  const entries = value instanceof JsonObject ? value.entries : Object.entries(value as object); // true: all that is left
  const map = object.value as Map<string, RuntimeValue>; // true: the value of an object
  for (const [key, item] of entries) map.set(key, runtimeValue(item));
  return object;
}

function wrap(value: unknown): RuntimeValue {
  return new jinja.Environment().set('value', value);
}

function needsCare(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (value instanceof JsonNumber || value instanceof JsonObject) return true;
  return Object.values(value).some(needsCare);
}

/** An int or a float, as Python tells them apart; printed as it was written. */
function numberValue({ text, isInteger }: JsonNumber): RuntimeValue {
  return Object.assign(wrap(isInteger ? 0 : 0.5), { value: Number(text), exact: text, toString: () => text });
}
