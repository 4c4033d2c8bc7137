/** How far a JSON object reaches in text that goes on behind it, or isn't all there yet. */

export type JsonExtent =
  /** `end` is the index behind its last brace. */
  { readonly type: 'whole'; readonly end: number } | { readonly type: 'partial' } | { readonly type: 'none' };

/** Looks for an object or array at `start`, after white space. Only brackets and strings are looked at: `JSON.parse` judges the rest. */
export function jsonExtent(text: string, start = 0): JsonExtent {
  let at = start;
  while (at < text.length && ' \t\r\n'.includes(text[at]!)) at++;
  if (at === text.length) return { type: 'partial' };
  if (text[at] !== '{' && text[at] !== '[') return { type: 'none' };
  let depth = 0;
  let inString = false;
  for (; at < text.length; at++) {
    const char = text[at]!;
    if (inString) {
      if (char === '\\') at++;
      else if (char === '"') inString = false;
    } else if (char === '"') inString = true;
    else if (char === '{' || char === '[') depth++;
    else if (char === '}' || char === ']') {
      depth--;
      if (depth === 0) return { type: 'whole', end: at + 1 };
    }
  }
  return { type: 'partial' };
}

/** A member of an object as it is written. */
export interface JsonMember {
  readonly key: string;
  /** The text of its value. */
  readonly value: string;
}

/** The members of an object in the order and spelling of its text, doubled ones included. @param text a JSON object that parses */
export function jsonMembers(text: string): JsonMember[] {
  const members: JsonMember[] = [];
  const body = text.trim().slice(1, -1);
  for (const part of splitAtCommas(body)) {
    const colon = keyEnd(part);
    members.push({ key: String(JSON.parse(part.slice(0, colon))), value: part.slice(colon + 1).trim() });
  }
  return members;
}

/** Whether an object, at any depth, has a key twice: readers disagree on which of the two counts. @param text JSON that parses */
export function hasDoubledKey(text: string): boolean {
  const trimmed = text.trim();
  if (trimmed.startsWith('[')) return splitAtCommas(trimmed.slice(1, -1)).some(hasDoubledKey);
  if (!trimmed.startsWith('{')) return false;
  const members = jsonMembers(trimmed);
  return (
    new Set(members.map(({ key }) => key)).size < members.length || members.some(({ value }) => hasDoubledKey(value))
  );
}

/** The parts of the inside of an object or array that parses, white space included. */
export function splitAtCommas(body: string): string[] {
  if (body.trim() === '') return [];
  const parts: string[] = [];
  let depth = 0;
  let inString = false;
  let from = 0;
  for (let at = 0; at < body.length; at++) {
    const char = body[at]!;
    if (inString) {
      if (char === '\\') at++;
      else if (char === '"') inString = false;
    } else if (char === '"') inString = true;
    else if (char === '{' || char === '[') depth++;
    else if (char === '}' || char === ']') depth--;
    else if (char === ',' && depth === 0) {
      parts.push(body.slice(from, at));
      from = at + 1;
    }
  }
  return [...parts, body.slice(from)];
}

/** Index of the colon behind the key. */
function keyEnd(member: string): number {
  let at = member.indexOf('"') + 1;
  while (member[at] !== '"') at += member[at] === '\\' ? 2 : 1;
  return member.indexOf(':', at);
}
