/** What only servers need of our own wire: checks of requests by schema (zod), and the OpenAPI document that is made of them. */
export { openApiDocument } from './open-api.js';
export {
  decodeGroupChange,
  decodePart,
  decodeUsageQuery,
  decodeVersionChange,
  decodeVersionQuery,
} from './request-schemas.js';
export type { RouteRow } from './route-table.js';
export { routeTable } from './route-table.js';
