/** Names of a grade's components: `reward/<name>` is a metric. */
import { complaint, type LoopwrightError } from '@loopwright/protocol';

/** `reward/<name>` of these are metrics of the whole reward. */
const reservedNames: readonly string[] = ['mean', 'std_within_group', 'total'];

/** What is wrong with the name at `at`, if anything. */
export function componentNameFault(
  field: string,
  { names, at }: { readonly names: readonly unknown[]; readonly at: number },
): LoopwrightError | undefined {
  const name = names[at];
  if (typeof name !== 'string' || !/^[\w.-]{1,64}$/.test(name)) {
    const got = typeof name === 'string' ? `${name.length} characters` : typeof name;
    return complaint({ field, expected: '1 to 64 letters, digits, _ . or -', got });
  }
  if (reservedNames.includes(name))
    return complaint({ field, expected: `none of ${reservedNames.join(', ')}`, got: name });
  if (names.indexOf(name) !== at)
    return complaint({ field, expected: 'a name that no other component has', got: name });
  return undefined;
}
