/** Numbers as people and models write them, read exactly: as fractions of integers, so that 0.1 is a tenth. */

/** numerator / denominator in lowest terms, denominator above 0. */
export interface Rational {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

export interface NumberOptions {
  /** Whether `50%` is 0.5; default false: what has a percent sign is no number. */
  readonly percent?: boolean;
}

/** Longer ones are floods of digits and no answers; arithmetic on them costs time squared. */
const maxDigits = 400;

const vulgarFractions: Readonly<Record<string, string>> = {
  ...{ '½': '1/2', '⅓': '1/3', '⅔': '2/3', '¼': '1/4', '¾': '3/4', '⅕': '1/5', '⅖': '2/5', '⅗': '3/5', '⅘': '4/5' },
  ...{ '⅙': '1/6', '⅚': '5/6', '⅐': '1/7', '⅛': '1/8', '⅜': '3/8', '⅝': '5/8', '⅞': '7/8', '⅑': '1/9', '⅒': '1/10' },
};
const vulgarSigns = new RegExp(`(\\d?)\\s?([${Object.keys(vulgarFractions).join('')}])`, 'g');

const literal = String.raw`(?:\d+(?:\.\d+)?|(?<!\d)\.\d+)(?:[eE][+-]?\d{1,3}(?!\d))?`;
/** A sign counts only where no number or word ends before it: the last number of `57-23` is 23. `3 1/2` is mixed. */
const pattern = String.raw`(?:(?<![\w.)])[+-]\s?)?(?:\d+ \d+/\d+|${literal}(?:\s?/\s?${literal})?)(?:\s?%)?`;
const anywhere = new RegExp(pattern, 'g');
const whole = new RegExp(`^${pattern}$`);

/** All numbers of a text, in order. Those with a percent sign only with `percent`; a division by 0 is none. */
export function numbersIn(text: string, options: NumberOptions = {}): Rational[] {
  return (plainNumbers(text).match(anywhere) ?? []).flatMap((found) => {
    const value = readNumber(found, options);
    return value === undefined ? [] : [value];
  });
}

/** The number that a text is, save for blanks, a currency sign and a full stop; undefined when it is anything more. */
export function parseNumber(text: string, options: NumberOptions = {}): Rational | undefined {
  const bare = plainNumbers(text).trim().replace(/\.$/, '').trimEnd();
  return whole.test(bare) ? readNumber(bare, options) : undefined;
}

/** The ways of LaTeX, Unicode and money to write numbers, made plain. */
function plainNumbers(text: string): string {
  return text
    .replace(/\\\$|[$€£¥]/g, '')
    .replace(/\{,\}/g, ',')
    .replace(/\\[,!;:]/g, '')
    .replace(/\\%/g, '%')
    .replace(/[−–]/g, '-')
    .replace(/(\d?)\s?\\[dt]?frac\s?(?:\{\s?(-?)(\d+)\s?\}\s?\{\s?(\d+)\s?\}|()(\d)\s?(\d))/g, fractionText)
    .replace(vulgarSigns, (_, before: string, sign: string) => mixed(before, vulgarFractions[sign] ?? ''))
    .replace(/\d+(?:,\d+)+/g, (run) =>
      // Groups of three digits are one number; other commas separate.
      /^\d{1,3}(?:,\d{3})+$/.test(run) ? run.replaceAll(',', '') : run.replaceAll(',', ', '),
    );
}

function fractionText(_: string, before: string, sign = '', over?: string, under?: string, ...rest: unknown[]): string {
  const [, shortOver, shortUnder] = rest;
  return mixed(before, `${sign}${over ?? String(shortOver)}/${under ?? String(shortUnder)}`);
}

function mixed(before: string, fraction: string): string {
  return before === '' ? fraction : `${before} ${fraction}`;
}

function readNumber(text: string, { percent = false }: NumberOptions): Rational | undefined {
  const isPercent = text.endsWith('%');
  if (text.length > maxDigits || (isPercent && !percent)) return undefined;
  const isNegative = text.startsWith('-');
  const [whole = '', over, under] = partsOf(text.replace(/^[+-]\s?/, '').replace(/\s?%$/, ''));
  let value = decimal(whole);
  if (over !== undefined && under !== undefined) {
    const part = divide(decimal(over), decimal(under));
    if (part === undefined) return undefined;
    value = add(value, part);
  }
  if (isPercent) value = lowestTerms(value.numerator, value.denominator * 100n);
  return isNegative ? { ...value, numerator: -value.numerator } : value;
}

/** Whole part, numerator and denominator as texts; the last two are absent where there is no `/`. */
function partsOf(text: string): readonly [string, string?, string?] {
  const [left = '', under] = text.split('/');
  if (under === undefined) return [left];
  const [first = '', second] = left.trim().split(' ');
  return second === undefined ? ['0', first, under.trim()] : [first, second, under.trim()];
}

function decimal(text: string): Rational {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const power = Number(exponent) - fraction.length;
  const digits = BigInt(whole + fraction);
  return power >= 0
    ? { numerator: digits * 10n ** BigInt(power), denominator: 1n }
    : lowestTerms(digits, 10n ** BigInt(-power));
}

function add(a: Rational, b: Rational): Rational {
  return lowestTerms(a.numerator * b.denominator + b.numerator * a.denominator, a.denominator * b.denominator);
}

function divide(a: Rational, b: Rational): Rational | undefined {
  return b.numerator === 0n ? undefined : lowestTerms(a.numerator * b.denominator, a.denominator * b.numerator);
}

function lowestTerms(numerator: bigint, denominator: bigint): Rational {
  const sign = denominator < 0n ? -1n : 1n;
  let [a, b] = [numerator < 0n ? -numerator : numerator, denominator * sign];
  while (b !== 0n) [a, b] = [b, a % b];
  return a === 0n
    ? { numerator: 0n, denominator: 1n }
    : { numerator: (numerator * sign) / a, denominator: (denominator * sign) / a };
}

export interface Tolerance {
  /** Default 0. */
  readonly absolute?: number;
  /** Of the right answer's size; default 0. */
  readonly relative?: number;
}

/** Exactly equal, or within one of the tolerances, which are taken as the decimal numbers that they are written as. */
export function equalNumbers(
  answer: Rational,
  gold: Rational,
  { absolute = 0, relative = 0 }: Tolerance = {},
): boolean {
  if (answer.numerator === gold.numerator && answer.denominator === gold.denominator) return true;
  const difference = size(add(answer, { ...gold, numerator: -gold.numerator }));
  const allowed = [decimal(String(absolute)), multiply(decimal(String(relative)), size(gold))];
  return allowed.some((most) => difference.numerator * most.denominator <= most.numerator * difference.denominator);
}

function size({ numerator, denominator }: Rational): Rational {
  return { numerator: numerator < 0n ? -numerator : numerator, denominator };
}

function multiply(a: Rational, b: Rational): Rational {
  return lowestTerms(a.numerator * b.numerator, a.denominator * b.denominator);
}

/** `3`, `-1/2`: for traces. */
export function showRational({ numerator, denominator }: Rational): string {
  return denominator === 1n ? String(numerator) : `${numerator}/${denominator}`;
}
