/** What only servers need of this wire: request schemas (zod) of the control plane. */
export { controlSchemas, decodeControlRequest } from './control-schemas.js';
