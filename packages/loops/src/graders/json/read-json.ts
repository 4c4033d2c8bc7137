/** Strict JSON out of what a model wrote, and why there is none where there is none. */
import type { StopReason } from '@loopwright/protocol';
import { codeBlock } from '../answers/code-block.js';

/** Where the JSON stands: the whole answer, a fenced block, or whichever is there. */
export type JsonForm = 'either' | 'bare' | 'fenced';

export type ReadJson =
  | { readonly status: 'ok'; readonly value: unknown }
  /** Says kind and place, never the text. */
  | { readonly status: 'unparsed'; readonly reason: string };

/** Longer texts aren't read: an answer is kilobytes, and what checks it may take time that grows faster than it. */
const maxCharacters = 200_000;
/** Deeper values could end those who walk over them. */
const maxDepth = 64;

/**
 * `bare`: the whole text but for blanks around it. `fenced`: the last closed block of three backticks or tildes that names `json`
 * or nothing; talk around it doesn't matter. `either`: bare where the text begins as JSON does, else fenced.
 *
 * Not JSON here: text behind the value, comments, `NaN`, a key twice in an object, a number that float64 can't hold (1e999),
 * more than 200 000 characters, nesting above 64.
 */
export function readJson(text: string, form: JsonForm = 'either', stopReason?: StopReason): ReadJson {
  const unparsed = (reason: string): ReadJson => ({
    status: 'unparsed',
    reason: stopReason === 'length' ? `${reason}; the answer was truncated by the token limit` : reason,
  });
  if (text.length > maxCharacters) return unparsed(`more than ${maxCharacters} characters`);
  const whole = text.trim();
  if (whole === '') return unparsed('nothing was written');
  const isBare = form === 'bare' || (form === 'either' && /^(?:[[{"\d-]|true\b|false\b|null\b)/.test(whole));
  const json = isBare ? whole : codeBlock(text, 'json');
  if (json === null)
    return unparsed(form === 'fenced' ? 'no closed block of JSON' : 'neither JSON nor a closed block of it');
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    return unparsed(`not JSON${placeOf(error, json)}`);
  }
  const fault = faultOf(json);
  return fault === undefined ? { status: 'ok', value } : unparsed(fault);
}

/** Node's own message quotes the text: only the place is taken from it. */
function placeOf(error: unknown, json: string): string {
  const at = /position (\d+)/.exec(error instanceof Error ? error.message : '')?.[1];
  if (at === undefined) return '';
  const lines = json.slice(0, Number(at)).split('\n');
  return ` from line ${lines.length}, column ${lines.at(-1)!.length + 1} on`;
}

/** What `JSON.parse` lets pass. @param json valid */
function faultOf(json: string): string | undefined {
  const open: (Set<string> | undefined)[] = []; // keys of the objects; nothing for lists
  const tokens = /"(?:[^"\\]|\\.)*"(\s*:)?|[{}[\]]|-?\d[\d.eE+-]*/g;
  for (const [token, colon] of json.matchAll(tokens)) {
    if (token === '{') open.push(new Set());
    else if (token === '[') open.push(undefined);
    else if (token === '}' || token === ']') open.pop();
    else if (colon !== undefined) {
      const key = JSON.parse(token.slice(0, -colon.length)) as string; // true: a string of valid JSON
      const keys = open.at(-1);
      if (keys?.has(key)) return 'a key stands twice in an object';
      keys?.add(key);
    } else if (!token.startsWith('"') && !Number.isFinite(Number(token))) return 'a number that is not finite';
    if (open.length > maxDepth) return `nested deeper than ${maxDepth}`;
  }
  return undefined;
}
