/** The numbers that stand for a model: hashes of its weights, so that whatever was lost, doubled or reordered shows in them. */

/** A 32-bit mix of two numbers (the finaliser of MurmurHash3). */
export function hash(a: number, b: number): number {
  let value = Math.imul(a ^ 0x9e3779b9, 0x85ebca6b) ^ b;
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}

export function logprob(weights: number, token: number, position: number): number {
  return -((hash(weights ^ token, position) % 4000) + 1) / 1000;
}

export function promptLogprobs(weights: number, prompt: Int32Array): Float32Array {
  return Float32Array.from(prompt, (token, position) =>
    position === 0 ? Number.NaN : logprob(weights, token, position),
  );
}
