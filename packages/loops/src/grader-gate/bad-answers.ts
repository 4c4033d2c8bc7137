/** Wrong answers that look like the right one. */
import { finalAnswer } from '../graders/answers/final-answer.js';
import { parseNumber } from '../graders/answers/rational.js';
import { sameMath } from '../graders/math.js';

/** The answer of a problem without the reasoning that some data sets put before it. */
export function shortAnswer(answer: string): string {
  const found = finalAnswer(answer);
  return (found.status === 'ok' ? found.text : answer).trim();
}

/** Neither the same text nor the same number or formula. */
export function isOtherAnswer(other: string, answer: string): boolean {
  const normal = (text: string): string => text.trim().toLowerCase();
  return normal(other) !== normal(answer) && !sameMath(other, answer);
}

const opposites: readonly (readonly [string, string])[] = [
  ['yes', 'no'],
  ['true', 'false'],
  ['left', 'right'],
  ['correct', 'incorrect'],
];

/** In SQL. */
export function isQuery(answer: string): boolean {
  return /^\s*(select|with)\b/i.test(answer);
}

/** Of the same form: another first digit, the opposite word, the answer of another problem, or else other letters. */
export function wrongAnswer(answer: string, others: readonly string[]): string | undefined {
  if (isQuery(answer)) return 'SELECT 424242';
  const digit = /[1-9]/.exec(answer) ?? /\d/.exec(answer);
  if (digit !== null) {
    const changed = String((Number(digit[0]) % 9) + 1);
    return answer.slice(0, digit.index) + changed + answer.slice(digit.index + 1);
  }
  const opposite = opposites.flatMap(([a, b]) => [[a, b] as const, [b, a] as const]);
  const [, word] = opposite.find(([from]) => from === answer.toLowerCase()) ?? [];
  return word ?? others.map(shortAnswer).find((other) => isOtherAnswer(other, answer)) ?? otherLetters(answer);
}

/** Each letter of the alphabet by the next: `A` becomes `B`, `Paris` becomes `Qbsjt`. */
function otherLetters(text: string): string | undefined {
  const changed = text.replace(/[a-z]/gi, (letter) => {
    if (letter === 'z' || letter === 'Z') return letter === 'z' ? 'a' : 'A';
    return String.fromCharCode(letter.charCodeAt(0) + 1);
  });
  return changed === text ? undefined : changed;
}

export function otherSign(answer: string): string | undefined {
  const value = parseNumber(answer);
  if (value === undefined || value.numerator === 0n) return undefined;
  return /^[-−–]/.test(answer) ? answer.replace(/^[-−–]\s?/, '') : `-${answer.replace(/^\+/, '')}`;
}

/** A decimal mark where there is none, or none where there is one. */
export function commaSlip(answer: string): string | undefined {
  const [, sign = '', digits, fraction] = /^([-+]?)(\d{1,3}(?:,\d{3})+|\d+)(?:\.(\d+))?$/.exec(answer) ?? [];
  if (digits === undefined) return undefined;
  if (fraction !== undefined) return `${sign}${digits.replaceAll(',', '')}${fraction}`;
  if (digits.includes(',')) return sign + digits.replaceAll(',', '.');
  if (digits.length > 3) return `${sign}${digits.slice(0, -3)}.${digits.slice(-3)}`;
  return digits.length === 1 ? `${sign}0,${digits}` : `${sign}${digits.slice(0, -1)},${digits.slice(-1)}`;
}

/** A unit by one of another size. */
const otherUnits: Readonly<Record<string, string>> = {
  ...{ km: 'm', m: 'km', cm: 'm', mm: 'm', kg: 'g', g: 'kg', mg: 'g', l: 'ml', ml: 'l' },
  ...{ hours: 'minutes', hour: 'minute', h: 'min', minutes: 'seconds', minute: 'second', min: 's', seconds: 'hours' },
  ...{ days: 'weeks', day: 'week', weeks: 'months', years: 'days', '°C': '°F', '°F': '°C' },
};

export function otherUnit(answer: string, given: string | undefined): string | undefined {
  const [, number, unit = ''] = /^([-+]?[\d.,]+)\s?(°?\p{L}+)$/u.exec(answer) ?? [];
  const other = Object.hasOwn(otherUnits, unit) ? otherUnits[unit] : undefined;
  if (number !== undefined && other !== undefined) return answer.slice(0, -unit.length) + other;
  return given !== undefined && parseNumber(answer) !== undefined ? `${answer} ${given}` : undefined;
}

/** Off by `epsilon` or, without one, by one in the last place of a decimal; a whole number by a hundredth. */
export function offByEpsilon(answer: string, epsilon: number | undefined): string | undefined {
  const value = parseNumber(answer);
  const [, before, whole, fraction, after] = /^(\D*?[-+]?)(\d[\d,]*)(?:\.(\d+))?(\D*)$/.exec(answer) ?? [];
  if (value === undefined || whole === undefined) return undefined;
  if (epsilon !== undefined) {
    const moved = Number(value.numerator) / Number(value.denominator) + epsilon;
    return Number.isFinite(moved) ? String(Number(moved.toPrecision(12))) : undefined;
  }
  if (fraction === undefined) return `${before}${whole}.01${after}`;
  const last = Number(fraction.at(-1));
  return `${before}${whole}.${fraction.slice(0, -1)}${last === 9 ? 8 : last + 1}${after}`;
}
