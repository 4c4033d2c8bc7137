/** Random numbers as a hash of where they are used, so that nothing depends on what was drawn before or beside. */

/** Finaliser of MurmurHash3 (public domain, A. Appleby): each input bit changes each output bit with probability ½. */
function mix(h: number): number {
  let x = h;
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return (x ^ (x >>> 16)) >>> 0;
}

/** 32 bits from (seed, stream, index); the seed counts with all its 53 bits. */
export function hash(seed: number, stream: number, index: number): number {
  let h = mix((seed >>> 0) ^ 0x9e3779b9);
  h = mix((h + Math.imul(Math.floor(seed / 2 ** 32) | 0, 0x85ebca77)) >>> 0);
  h = mix((h ^ Math.imul((stream | 0) + 0x165667b1, 0xc2b2ae3d)) >>> 0);
  return mix((h + Math.imul((index | 0) + 0x27d4eb2f, 0x9e3779b1)) >>> 0);
}

/** Uniform in [0, 1), on a grid of 2⁻²⁴, which float32 holds exactly. */
export function uniform(seed: number, stream: number, index: number): number {
  return (hash(seed, stream, index) >>> 8) / 2 ** 24;
}
