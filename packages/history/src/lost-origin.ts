import { createFinding, derivedFromOf } from "@throughline/core/internal";
import type { Finding, StoredRecord } from "@throughline/core";

/** The origin usually stands directly before the records derived from it, so a short search finds it. */
const nearbyRecords = 64;

/** Caches the first position of each id, with the number of indexed records, because a list may have grown since. */
const searched = new WeakMap<readonly StoredRecord[], { readonly places: Map<string, number>; count: number }>();

/**
 * Reports a derived record whose origin is missing from a whole log. The record itself is complete, but the source from
 * which both were read is lost.
 */
export function reportLostOrigin(
  { record, seq, id }: StoredRecord,
  records: readonly StoredRecord[],
  findings: Finding[],
): void {
  if (record["derivedFrom"] === undefined) return;
  const from = derivedFromOf(record);
  const firstSeq = records[0]?.seq ?? 1;
  // A window may lack the origin because it lies before the records that were read.
  if (from === null || firstSeq > 1 || holds(records, from.id, seq - firstSeq)) return;
  const message = `record ${id} was derived from ${from.id}, which is not in the session`;
  findings.push(createFinding("ORIGIN_MISSING", message, { recordId: id }));
}

/** Only earlier records count, because a later record cannot be the origin. */
function holds(records: readonly StoredRecord[], id: string, before: number): boolean {
  for (let at = before - 1; at >= Math.max(0, before - nearbyRecords); at--) if (records[at]?.id === id) return true;
  const known = searched.get(records) ?? { places: new Map<string, number>(), count: 0 };
  searched.set(records, known);
  for (; known.count < records.length; known.count++) {
    const { id: there } = records[known.count] as StoredRecord;
    if (!known.places.has(there)) known.places.set(there, known.count);
  }
  return (known.places.get(id) ?? Infinity) < before;
}
