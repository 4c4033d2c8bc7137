/** The program in an answer. */

export type BlockLanguage = 'python' | 'javascript' | 'json' | 'sql';

const fenceNames: Readonly<Record<BlockLanguage, readonly string[]>> = {
  python: ['', 'python', 'python3', 'py'],
  javascript: ['', 'javascript', 'js', 'node'],
  json: ['', 'json'],
  sql: ['', 'sql', 'sqlite'],
};

/**
 * The last fenced block that is closed and names the language or none; null where there is none. A fence is three or more backticks or
 * tildes at the start of a line, and is closed by one of the same kind that is no shorter.
 */
export function codeBlock(text: string, language: BlockLanguage): string | null {
  let found: string | null = null;
  let open: { readonly fence: string; readonly isWanted: boolean; readonly lines: string[] } | undefined;
  for (const line of text.split(/\r?\n/)) {
    const [, fence, info] = /^ {0,3}(`{3,}|~{3,})\s*(.*?)\s*$/.exec(line) ?? [];
    if (open === undefined) {
      // Backticks in the info mean that it was code within a line.
      if (fence !== undefined && info !== undefined && !info.includes('`')) {
        const name = info.split(/[\s{:,]/)[0]!.toLowerCase();
        open = { fence, isWanted: fenceNames[language].includes(name), lines: [] };
      }
    } else if (fence !== undefined && info === '' && fence[0] === open.fence[0] && fence.length >= open.fence.length) {
      if (open.isWanted) found = open.lines.join('\n');
      open = undefined;
    } else open.lines.push(line);
  }
  return found;
}
