/** Small formulas, read from LaTeX or plain text and compared by their values at several points. */

/** Value of a formula where its letters have the values given; NaN where it has none. */
export type Expression = (variables: ReadonlyMap<string, number>) => number;

export interface ParsedExpression {
  readonly value: Expression;
  readonly variables: ReadonlySet<string>;
}

/** Longer ones are no answers. Bounds the recursion too. */
const maxLength = 500;

const functions: Readonly<Record<string, (x: number) => number>> = {
  sin: Math.sin,
  cos: Math.cos,
  tan: Math.tan,
  arcsin: Math.asin,
  arccos: Math.acos,
  arctan: Math.atan,
  ln: Math.log,
  log: Math.log10,
  exp: Math.exp,
};

const constants: Readonly<Record<string, number>> = { '\\pi': Math.PI, pi: Math.PI, e: Math.E };

/**
 * Reads a formula of numbers, one-letter variables, `+ - * / ^ !`, brackets, `\frac`, `\sqrt`, `\pi`, `e` and the elementary
 * functions. Undefined for anything else, words above all: `east` is not e·a·s·t, and `no` alone not `on`.
 */
export function parseExpression(text: string): ParsedExpression | undefined {
  if (text.length > maxLength || /^[a-zA-Z]{2,}$/.test(text)) return undefined;
  const tokens = tokensOf(text);
  if (tokens === undefined || tokens.length === 0) return undefined;
  const parser = new Parser(tokens);
  const value = parser.sum();
  return value === undefined || !parser.isAtEnd ? undefined : { value, variables: parser.variables };
}

/** Whether two formulas have the same value wherever both are looked at. */
export function sameExpression(a: ParsedExpression, b: ParsedExpression): boolean {
  const names = [...new Set([...a.variables, ...b.variables])].sort();
  let compared = 0;
  for (let point = 0; point < 12; point++) {
    // Fixed and irregular, so that no formula of an answer is right by the choice of points.
    const variables = new Map(
      names.map((name, i) => [name, 0.37 + ((point * 7 + i * 13) % 29) * 0.2113 + point * 0.0171]),
    );
    const [left, right] = [a.value(variables), b.value(variables)];
    if (!Number.isFinite(left) && !Number.isFinite(right)) continue;
    if (!Number.isFinite(left) || !Number.isFinite(right)) return false;
    if (!(Math.abs(left - right) <= 1e-9 * Math.max(1e-12, Math.abs(left), Math.abs(right)))) return false;
    compared += 1;
    if (names.length === 0) return true;
  }
  return compared >= 3;
}

function tokensOf(text: string): string[] | undefined {
  const tokens: string[] = [];
  const pattern = /\s*(\d[\d,]*(?:\.\d+)?|\.\d+|\\[a-zA-Z]+|[a-zA-Z]+|[-+*/^!(){}[\]])/y;
  let at = 0;
  while (at < text.length) {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match === null) return text.slice(at).trim() === '' ? tokens : undefined;
    at = pattern.lastIndex;
    const word = match[1] ?? '';
    if (!/^[a-zA-Z]{2,}$/.test(word) || word in functions || word in constants) tokens.push(word);
    else if (word.length === 2) tokens.push(...word);
    else return undefined;
  }
  return tokens;
}

class Parser {
  readonly variables = new Set<string>();
  readonly #tokens: readonly string[];
  #at = 0;

  constructor(tokens: readonly string[]) {
    this.#tokens = tokens;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#tokens.length;
  }

  sum(): Expression | undefined {
    let left = this.#product();
    while (left !== undefined && (this.#next === '+' || this.#next === '-')) {
      const sign = this.#take() === '+' ? 1 : -1;
      const [a, b] = [left, this.#product()];
      left = b && ((at) => a(at) + sign * b(at));
    }
    return left;
  }

  /** Products and quotients; factors may stand side by side. */
  #product(): Expression | undefined {
    let left = this.#signed();
    while (left !== undefined) {
      const a: Expression = left;
      if (this.#next === '*' || this.#next === '/') {
        const isProduct = this.#take() === '*';
        const b = this.#signed();
        left = b && (isProduct ? (at) => a(at) * b(at) : (at) => a(at) / b(at));
      } else if (this.#next !== undefined && !'+-*/^!)}]'.includes(this.#next)) {
        // `2x`; but `2 3` is two numbers, and `3 1/2` a mixed one, which `rational.ts` reads.
        if (/^[\d.]/.test(this.#next)) return undefined;
        const b = this.#power();
        left = b && ((at) => a(at) * b(at));
      } else return left;
    }
    return undefined;
  }

  #signed(): Expression | undefined {
    if (this.#next !== '-' && this.#next !== '+') return this.#power();
    const sign = this.#take() === '-' ? -1 : 1;
    const operand = this.#signed();
    return operand && ((at) => sign * operand(at));
  }

  #power(): Expression | undefined {
    let base = this.#atom();
    while (base !== undefined && this.#next === '!') {
      this.#take();
      const n = base;
      base = (at) => factorial(n(at));
    }
    if (base === undefined || this.#next !== '^') return base;
    this.#take();
    const [b, exponent] = [base, this.#signed()];
    return exponent && ((at) => b(at) ** exponent(at));
  }

  #atom(): Expression | undefined {
    const token = this.#take();
    if (token === undefined) return undefined;
    if (/^[\d.]/.test(token)) return numberAtom(token);
    const constant = constants[token];
    if (constant !== undefined) return () => constant;
    if (token === '(' || token === '{' || token === '[') return this.#closed(token);
    if (token === '\\frac') {
      const [over, under] = [this.#group(), this.#group()];
      return over && under && ((at) => over(at) / under(at));
    }
    if (token === '\\sqrt') return this.#root();
    const named = functions[token.replace('\\', '')];
    if (named !== undefined) return this.#applied(named);
    if (!/^[a-zA-Z]$/.test(token)) return undefined;
    this.variables.add(token);
    return (at) => at.get(token) ?? Number.NaN;
  }

  /** `\sin x`, `\sin(x)`, `\sin^2 x`; a power behind the bracket, as in `\sin(x)^2`, is one of the whole. */
  #applied(named: (x: number) => number): Expression | undefined {
    let exponent: Expression | undefined = () => 1;
    if (this.#next === '^') {
      this.#take();
      exponent = this.#atom();
    }
    const [n, argument] = [exponent, this.#next === '(' || this.#next === '{' ? this.#atom() : this.#power()];
    return n && argument && ((at) => named(argument(at)) ** n(at));
  }

  #root(): Expression | undefined {
    let degree: Expression | undefined = () => 2;
    if (this.#next === '[') {
      this.#take();
      degree = this.#closed('[');
    }
    const [n, radicand] = [degree, this.#group()];
    return n && radicand && ((at) => (n(at) === 2 ? Math.sqrt(radicand(at)) : radicand(at) ** (1 / n(at))));
  }

  /** `{…}` */
  #group(): Expression | undefined {
    return this.#take() === '{' ? this.#closed('{') : undefined;
  }

  #closed(open: string): Expression | undefined {
    const inner = this.sum();
    const close = { '(': ')', '{': '}', '[': ']' }[open];
    return inner !== undefined && this.#take() === close ? inner : undefined;
  }

  get #next(): string | undefined {
    return this.#tokens[this.#at];
  }

  #take(): string | undefined {
    const token = this.#next;
    if (token !== undefined) this.#at += 1;
    return token;
  }
}

function numberAtom(token: string): Expression | undefined {
  if (token.includes(',') && !/^\d{1,3}(?:,\d{3})+(?:\.\d+)?$/.test(token)) return undefined;
  const value = Number(token.replaceAll(',', ''));
  return () => value;
}

function factorial(n: number): number {
  if (!Number.isInteger(n) || n < 0 || n > 170) return Number.NaN;
  let product = 1;
  for (let i = 2; i <= n; i++) product *= i;
  return product;
}
