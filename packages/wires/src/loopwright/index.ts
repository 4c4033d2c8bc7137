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
  decodeGroupChange,
  decodePart,
  decodeVersionChange,
  decodeVersionQuery,
  encodeVersionQuery,
  groupPath,
  registryPaths,
  versionFilePath,
  versionParts,
  versionPath,
} from './registry.js';
export type { UsageLine, UsageQuery } from './usage.js';
export { decodeUsage, decodeUsageQuery, encodeUsageQuery, usagePath } from './usage.js';
