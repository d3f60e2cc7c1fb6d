import type { RecordDraft, SessionStore } from "@throughline/core";

const mostRecords = 400;
const mostBatchBytes = 4 * 1024 * 1024;

/**
 * Returns the drafts that fit into one append. Drafts that derive from one message stay in the same append.
 * @param requestCharacters the length of the source text; drafts are measured only when it reaches the batch limit
 */
export function firstBatch(drafts: readonly RecordDraft[], requestCharacters: number): readonly RecordDraft[] {
  const isSmall = requestCharacters < mostBatchBytes;
  let bytes = 0;
  for (const [index, draft] of drafts.entries()) {
    const isFull = index >= mostRecords || (index > 0 && bytes >= mostBatchBytes);
    if (isFull && draft["derivedFrom"] === undefined) return drafts.slice(0, index);
    if (!isSmall) bytes += JSON.stringify(draft).length;
  }
  return drafts;
}

/**
 * Returns null for a reply above the store's record limit. Its hash and size are recorded, and the client repeats its
 * text in the next request.
 */
export function storable<Draft extends object>(draft: Draft | null, { capabilities }: SessionStore): Draft | null {
  const isRecord = draft === null || Buffer.byteLength(JSON.stringify(draft)) < capabilities.limits.recordBytes;
  return isRecord ? draft : null;
}
