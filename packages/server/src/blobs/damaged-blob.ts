/** The refusal of bytes that are not those of their name. */
import { errorCatalogue, LoopwrightError } from '@loopwright/protocol';
import type { BlobRef } from './blob-store.js';

export function damagedBlob(ref: BlobRef, what: string, cause?: unknown): LoopwrightError {
  return new LoopwrightError({
    code: 'blob_damaged',
    message: `blob ${ref.hash.slice(0, 12)}… ${what}; the data directory was damaged from outside`,
    details: {
      field: `blob ${ref.hash}`,
      expected: 'the bytes that were written',
      got: `one that ${what}`,
      remedy: errorCatalogue.blob_damaged.remedy,
    },
    cause,
  });
}
