/** Routes of our own, where no published API has such a thing. */
export type { UsageLine, UsageQuery } from './usage.js';
export { decodeUsage, decodeUsageQuery, encodeUsageQuery, usagePath } from './usage.js';
