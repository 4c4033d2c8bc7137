/** Values on the command line, read and checked. */
import { InvalidArgumentError } from 'commander';

/** A whole number within limits, for commander's argument parsers. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Expected a whole number from ${min} to ${max}.`);
  };
}

/** `id=directory`, collected over several uses of the option. */
export function modelArgument(text: string, earlier: Readonly<Record<string, string>> = {}): Record<string, string> {
  const at = text.indexOf('=');
  const [id, directory] = [text.slice(0, at), text.slice(at + 1)];
  if (at < 1 || directory === '')
    throw new InvalidArgumentError('Expected id=directory, such as my-model=./models/my-model.');
  if (id in earlier) throw new InvalidArgumentError(`The id ${id} is given twice.`);
  return { ...earlier, [id]: directory };
}
