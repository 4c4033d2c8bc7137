/** `strftime` as Python prints it in the C locale, for templates that write today's date. */

const months = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];
const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

const two = (value: number): string => String(value).padStart(2, '0');

function dayOfYear(date: Date): number {
  const start = Date.UTC(date.getFullYear(), 0, 1);
  return Math.round((Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) - start) / 86_400_000) + 1;
}

const directives: Readonly<Record<string, (date: Date) => string>> = {
  Y: (date) => String(date.getFullYear()),
  y: (date) => two(date.getFullYear() % 100),
  m: (date) => two(date.getMonth() + 1),
  d: (date) => two(date.getDate()),
  e: (date) => String(date.getDate()).padStart(2, ' '),
  B: (date) => months[date.getMonth()] ?? '',
  b: (date) => (months[date.getMonth()] ?? '').slice(0, 3),
  A: (date) => days[date.getDay()] ?? '',
  a: (date) => (days[date.getDay()] ?? '').slice(0, 3),
  H: (date) => two(date.getHours()),
  I: (date) => two(date.getHours() % 12 || 12),
  M: (date) => two(date.getMinutes()),
  S: (date) => two(date.getSeconds()),
  p: (date) => (date.getHours() < 12 ? 'AM' : 'PM'),
  j: (date) => String(dayOfYear(date)).padStart(3, '0'),
  F: (date) => `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`,
  T: (date) => `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`,
  '%': () => '%',
};

/**
 * Formats `date` in local time. `%-d` and its kind drop leading zeros; an unknown directive stays as it is.
 * English names whatever the locale of the host, so that a prompt is the same everywhere.
 */
export function strftime(date: Date, format: string): string {
  return format.replace(/%(-?)([A-Za-z%])/g, (text: string, dash: string, letter: string) => {
    const value = directives[letter]?.(date);
    if (value === undefined) return text;
    return dash === '-' ? value.replace(/^[0 ]+(?=.)/, '') : value;
  });
}
