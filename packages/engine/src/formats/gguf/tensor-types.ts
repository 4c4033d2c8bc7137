/** The tensor types of GGUF files: how many values a block holds and how many bytes it takes, for those that are read. */

export interface TensorType {
  readonly name: string;
  /** Values in a block; rows are whole numbers of blocks. */
  readonly blockValues: number;
  readonly blockBytes: number;
}

/** By the number in the file. */
const readable = {
  0: { name: 'F32', blockValues: 1, blockBytes: 4 },
  1: { name: 'F16', blockValues: 1, blockBytes: 2 },
  2: { name: 'Q4_0', blockValues: 32, blockBytes: 18 },
  3: { name: 'Q4_1', blockValues: 32, blockBytes: 20 },
  8: { name: 'Q8_0', blockValues: 32, blockBytes: 34 },
  // What quantizing to Q4_0 and Q4_1 makes of the output matrix.
  14: { name: 'Q6_K', blockValues: 256, blockBytes: 210 },
  30: { name: 'BF16', blockValues: 1, blockBytes: 2 },
} as const satisfies Record<number, TensorType>;

export type TensorTypeName = (typeof readable)[keyof typeof readable]['name'];

/** Types that are not read, by their names, so that a refusal can say what a file has. */
const others: Readonly<Record<number, string>> = {
  6: 'Q5_0',
  7: 'Q5_1',
  9: 'Q8_1',
  10: 'Q2_K',
  11: 'Q3_K',
  12: 'Q4_K',
  13: 'Q5_K',
  15: 'Q8_K',
  16: 'IQ2_XXS',
  17: 'IQ2_XS',
  18: 'IQ3_XXS',
  19: 'IQ1_S',
  20: 'IQ4_NL',
  21: 'IQ3_S',
  22: 'IQ2_S',
  23: 'IQ4_XS',
  24: 'I8',
  25: 'I16',
  26: 'I32',
  27: 'I64',
  28: 'F64',
  29: 'IQ1_M',
  34: 'TQ1_0',
  35: 'TQ2_0',
  39: 'MXFP4',
};

/** Names of the types that are read. */
export const readableTypes: readonly TensorTypeName[] = Object.values(readable).map(({ name }) => name);

export function findTensorType(id: number): (TensorType & { readonly name: TensorTypeName }) | undefined {
  return Object.hasOwn(readable, id) ? readable[id as keyof typeof readable] : undefined; // Just found among the keys.
}

/** The name of a type that isn't read, or its number. */
export function otherTypeName(id: number): string {
  return others[id] ?? `type ${id}`;
}

/** The number of a type in a file. */
export function tensorTypeId(name: TensorTypeName): number {
  return Number(Object.entries(readable).find(([, type]) => type.name === name)![0]); // Names come from the same table.
}
