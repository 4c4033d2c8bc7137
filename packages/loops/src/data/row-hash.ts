/** Hashes of what a row says: the same for the same content, whatever file, key order or spacing it was written in. */

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import type { JsonValue } from './row.js';

/** JSON with sorted keys and without spaces: the JSON Canonicalization Scheme (RFC 8785). */
export function canonicalJson(value: JsonValue): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const members = Object.entries(value as Readonly<Record<string, JsonValue>>); // true: no list
  members.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, inner]) => `${JSON.stringify(key)}:${canonicalJson(inner)}`).join(',')}}`;
}

const encoder = new TextEncoder();
/** 128 bits: two of 10^12 rows share an id by chance once in 10^14 such sets. */
const idBytes = 16;

/** @returns 32 hexadecimal digits: the first half of the SHA-256 of the canonical JSON */
export function contentId(value: JsonValue): string {
  return bytesToHex(sha256(encoder.encode(canonicalJson(value))).subarray(0, idBytes));
}

/** 64 bits of the SHA-256 of a text, in two halves. */
export interface Fingerprint {
  readonly high: number;
  readonly low: number;
}

export function fingerprint(text: string): Fingerprint {
  const { buffer, byteOffset } = sha256(encoder.encode(text));
  const view = new DataView(buffer, byteOffset);
  return { high: view.getUint32(0), low: view.getUint32(4) };
}

/** NFKC, lower case, runs of white space as one space: texts that differ in these only are taken for the same. */
export function normalizeText(text: string): string {
  return text.normalize('NFKC').toLowerCase().replace(/\s+/gu, ' ').trim();
}

/** A value with all its texts normalised; keys stay as they are. */
export function normalizeTexts(value: JsonValue): JsonValue {
  if (typeof value === 'string') return normalizeText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(normalizeTexts);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, normalizeTexts(inner)]));
}
