/** Whole numbers in few words. */

/** Of a run of thousands of steps with gaps, more than these are of no help. */
const most = 20;

/** `1, 5, 10 to 40`; of more than twenty such parts the first and the last. @param numbers ascending, each once */
export function rangesText(numbers: readonly number[]): string {
  const ranges: [first: number, last: number][] = [];
  for (const number of numbers) {
    const range = ranges.at(-1);
    if (range !== undefined && number === range[1] + 1) range[1] = number;
    else ranges.push([number, number]);
  }
  // Two in a row are no shorter as a range.
  const parts = ranges.flatMap(([first, last]) =>
    last - first < 2 ? [...new Set([first, last])].map(String) : [`${first} to ${last}`],
  );
  if (parts.length <= most) return parts.join(', ');
  return `${parts.slice(0, most - 1).join(', ')}, … ${parts.at(-1)}`;
}
