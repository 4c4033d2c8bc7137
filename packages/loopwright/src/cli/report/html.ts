/** Text in a page: what a run or a model wrote is never markup. */
import { escapeText } from '@loopwright/loops';

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Text as HTML, in elements and quoted attributes. Line ends stay; other control and invisible characters are shown as escapes. */
export function html(text: string): string {
  const shown = text
    .split('\n')
    .map((line) => line.split('\\').map(escapeText).join('\\'))
    .join('\n');
  return shown.replace(/[&<>"']/g, (char) => entities[char] ?? char);
}
