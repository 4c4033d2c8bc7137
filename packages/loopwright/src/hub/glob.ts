/** Patterns of paths as the cards of data sets have them: `*` and `?` within a folder, `**` over several, `[a-c]`, `{a,b}`. */

/** Patterns come from outside, and stars cost time: real ones have two or three. */
const maxLength = 300;
const maxStars = 6;

/** @returns undefined for a pattern that isn't one, or is too long */
export function globMatcher(pattern: string): ((path: string) => boolean) | undefined {
  const stars = pattern.match(/\*+/g)?.length ?? 0;
  if (pattern.length > maxLength || stars > maxStars) return undefined;
  const source = pattern.replace(/^\.\//, '').replaceAll(/\*\*\/|\*+|\?|\[!?[\w-]+\]|\{[^{}/]*\}|[\s\S]/g, (token) => {
    if (token === '**/') return '(?:.*/)?';
    if (token.startsWith('**')) return '.*';
    if (token === '*') return '[^/]*';
    if (token === '?') return '[^/]';
    if (token.length > 1 && token.startsWith('[')) return token.replace('[!', '[^');
    if (token.length > 1) return `(?:${token.slice(1, -1).split(',').map(escaped).join('|')})`;
    return escaped(token);
  });
  try {
    const expression = new RegExp(`^${source}$`);
    return (path) => expression.test(path);
  } catch {
    return undefined; // such as a range that is the wrong way round
  }
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}
