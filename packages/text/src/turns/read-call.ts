/** One call out of the text of a JSON object. */
import { hasDoubledKey, jsonMembers } from './json-extent.js';
import type { BrokenReason, TurnEvent } from './turn-event.js';

export interface CallSpelling {
  /** The key of the arguments. */
  readonly argumentsKey: 'arguments' | 'parameters';
  /** Names of the tools that were offered. */
  readonly tools: readonly string[];
}

/** Nesting that a call may have: `JSON.parse` takes thousands, and so would whoever reads the call. */
const maximumDepth = 64;

/** @param json what should be an object with name and arguments @param raw the same with its marks, for a call that is broken */
export function readCall(json: string, raw: string, { argumentsKey, tools }: CallSpelling): TurnEvent {
  const broken = (reason: BrokenReason): TurnEvent => ({ type: 'broken-call', raw, reason });
  const value = parsed(json);
  if (!isObject(value)) return broken('not-json');
  if (depthOf(json) > maximumDepth) return broken('wrong-shape');
  if (hasDoubledKey(json)) return broken('doubled-key');
  const { name, id } = value;
  const given = value[argumentsKey] ?? {};
  if (typeof name !== 'string' || !isObject(given)) return broken('wrong-shape');
  if (!tools.includes(name)) return broken('unknown-tool');
  const text = jsonMembers(json).find(({ key }) => key === argumentsKey)?.value ?? '{}';
  const named = typeof id === 'string' ? { id } : {};
  return { type: 'tool-call', name, arguments: text === 'null' ? '{}' : text, ...named };
}

/** One call whose name is known from elsewhere. */
export function readArguments(name: string, json: string, raw: string, tools: readonly string[]): TurnEvent {
  return readCall(`{"name":${JSON.stringify(name)},"arguments":${json}}`, raw, { argumentsKey: 'arguments', tools });
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Brackets open at once at most; those within strings are counted too, which errs on the safe side. */
function depthOf(json: string): number {
  let [depth, deepest] = [0, 0];
  for (const char of json) {
    if (char === '{' || char === '[') deepest = Math.max(deepest, ++depth);
    else if (char === '}' || char === ']') depth--;
  }
  return deepest;
}
