/** Mathematical answers as text: what is only layout or habit is taken away, so that equal answers look alike. */

/** Commands that change how a thing looks and not what it is; their argument stays. */
const wrappers = /\\(?:text|textbf|textit|mathrm|mathbf|mathit|mbox|operatorname|displaystyle|textstyle)\b\*?/g;
const units =
  /(?:\\,|~|\s)*\\?(?:text|mathrm|mbox)\s*\{\s*(?:cm|mm|km|m|kg|g|s|h|hours?|minutes?|seconds?|inch(?:es)?|feet|ft|units?|square units?|dollars?|cents?|degrees?)\s*\}(?:\s*\^\s*(?:\{\s*[23]\s*\}|[23]))?\s*$/;

/**
 * An answer without dollar signs, spacing commands, `\left`/`\right`, font commands, a trailing unit or full stop, the
 * `x =` in front, and with one spelling for fractions, roots, products and inequalities. Blanks are gone, save in words.
 */
export function normalMath(text: string): string {
  const bare = text
    .trim()
    .replace(/^\\?\$+|\\?\$+$/g, '')
    .replace(/^\\[([]|\\[)\]]$/g, '')
    .replace(units, '')
    .replace(/\\left\s*|\\right\s*|\\[bB]igg?[lr]?\s*(?=[()[\]|\\])/g, '')
    .replace(/\\[,!;:>]|\\quad\b|\\qquad\b|~|\\ /g, ' ')
    .replace(/\{,\}/g, ',')
    .replace(/\\[dtc]frac\b/g, '\\frac')
    .replace(/\\frac\s*(\d)\s*(\d)/g, '\\frac{$1}{$2}')
    .replace(/\\frac\s*(\d)\s*\{/g, '\\frac{$1}{')
    .replace(/\\sqrt\s*(\d|[a-zA-Z])(?![\w{])/g, '\\sqrt{$1}')
    .replace(/\\(?:cdot|times|ast)\b/g, '*')
    .replace(/\\div\b/g, '/')
    .replace(/\\(?:leq|leqslant)\b|≤/g, '\\le')
    .replace(/\\(?:geq|geqslant)\b|≥/g, '\\ge')
    .replace(/\\neq\b|≠/g, '\\ne')
    .replace(/\\infin\b|∞/g, '\\infty')
    .replace(/π/g, '\\pi')
    .replace(/√\s*(\d+)/g, '\\sqrt{$1}')
    .replace(/\\?°|\^\s*\{?\s*\\circ\s*\}?|\\degree\b/g, '')
    .replace(/[−–]/g, '-')
    .replace(wrappers, '')
    .replace(/\\%/g, '%')
    .replace(/\\([{}])/g, (_, brace: string) => (brace === '{' ? '⟨' : '⟩')) // set braces, apart from grouping ones
    .trim()
    .replace(/\.$/, '')
    .replace(/^[a-zA-Z]\s*(?:=|\\in\b)\s*/, '');
  return unbrace(
    bare
      .replace(/\s+/g, ' ')
      .replace(/ ?([^\w ]) ?/g, '$1')
      .trim(),
  );
}

/** `{abc}` around the whole is no part of the answer. */
function unbrace(text: string): string {
  return /^\{[^{}]*\}$/.test(text) ? text.slice(1, -1).trim() : text;
}

/** The parts of a list, tuple, set or interval, with its brackets; undefined when it is none. */
export function partsOf(
  text: string,
): { readonly open: string; readonly close: string; readonly parts: readonly string[] } | undefined {
  const bracketed = /^([([⟨])(.*)([)\]⟩])$/s.exec(text);
  const [, open = '', inner = text, close = ''] = bracketed ?? [];
  const parts = splitTopLevel(inner);
  if (parts === undefined || (parts.length < 2 && open !== '⟨')) return undefined;
  return { open, close, parts };
}

/** Splits at commas outside all brackets; groups of digits such as `1,234` stay whole. */
function splitTopLevel(text: string): string[] | undefined {
  const parts = [''];
  let depth = 0;
  for (const [i, char] of Array.from(text).entries()) {
    if ('([{⟨'.includes(char)) depth += 1;
    if (')]}⟩'.includes(char)) depth -= 1;
    if (depth < 0) return undefined;
    if (char === ',' && depth === 0 && !isDigitGroup(text, i)) parts.push('');
    else parts[parts.length - 1] += char;
  }
  return depth === 0 ? parts : undefined;
}

function isDigitGroup(text: string, comma: number): boolean {
  const before = text.slice(Math.max(0, comma - 3), comma);
  return /\d$/.test(before) && /^,\d{3}(?!\d)/.test(text.slice(comma, comma + 5)) && /^\d[\d,.]*$/.test(text);
}
