import type { RecordDraft, SessionStore } from "@throughline/core";

const mostRecords = 400;
const mostBatchBytes = 4 * 1024 * 1024;

/**
 * As many drafts as one append takes; records of one message stay together.
 * @param requestCharacters of the text that they are made of: where a batch may be larger, they are not measured
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

/** A reply that is larger than a record may be is not stored; its hash and size are. The client sends it with its next request. */
export function storable<Draft extends object>(draft: Draft | null, { capabilities }: SessionStore): Draft | null {
  const isRecord = draft === null || Buffer.byteLength(JSON.stringify(draft)) < capabilities.limits.recordBytes;
  return isRecord ? draft : null;
}
