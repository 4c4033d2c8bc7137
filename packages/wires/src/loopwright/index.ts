/** Routes of our own, where no published API has such a thing. */
export type {
  GroupChange,
  GroupList,
  VersionDetail,
  VersionPage,
  VersionPart,
  VersionQuery,
} from './registry.js';
export {
  encodeVersionQuery,
  groupPath,
  registryPaths,
  versionFilePath,
  versionParts,
  versionPath,
} from './registry.js';
export { healthPath, modelsPath, openApiPath, tracePath } from './routes.js';
export type { UsageLine, UsageQuery } from './usage.js';
export { decodeUsage, encodeUsageQuery, usagePath } from './usage.js';
