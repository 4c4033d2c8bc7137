/** Numbers, times and tables for people. */

/** Lines of left-aligned columns, the head first. */
export function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = head.map((name, column) => Math.max(name.length, ...rows.map((row) => (row[column] ?? '').length)));
  return [head, ...rows].map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** Local time to the minute, such as `2026-03-01 14:05`. */
export function timeText(ms: number): string {
  const date = new Date(ms);
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join('-');
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** `4.2 GB`, in powers of 1000. */
export function bytesText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1000 ** power;
  return `${value >= 100 || power === 0 ? value.toFixed(0) : value.toFixed(1)} ${units[power] ?? ''}`;
}

/** `52.5 %` of a share. */
export function percentText(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

/** A measured figure: whole as it is, others in four digits, such as `18.44` or `0.1422`. */
export function figureText(value: number): string {
  return String(Number.isInteger(value) ? value : Number(value.toPrecision(4)));
}

/** `+4.0`, `−0.5`, and `0.0` without a sign. */
export function signedText(value: number, digits: number): string {
  const text = Math.abs(value).toFixed(digits);
  return Number(text) === 0 ? text : `${value < 0 ? '−' : '+'}${text}`;
}

/** `135.2 M` parameters. */
export function countText(count: number): string {
  if (count >= 1e9) return `${(count / 1e9).toFixed(1)} B`;
  if (count >= 1e6) return `${(count / 1e6).toFixed(1)} M`;
  return count >= 1e3 ? `${(count / 1e3).toFixed(0)} k` : String(count);
}
