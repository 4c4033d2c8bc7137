/** `1 problem`, `2 problems`. @param noun in the singular; its plural ends in s */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
