/** The names of the wires; each wire's codecs are a subpath of its own. */
export type { WireName } from './wire-names.js';
export { wireNames } from './wire-names.js';
