import { createFinding, derivedFromOf } from "@throughline/core/internal";
import { type Finding, type StoredRecord } from "@throughline/core";

/** The first record of a unit stands right before those derived from it. */
const nearbyRecords = 64;

/** Where ids stand first, of lists that were searched whole, and of how many records: a list may have grown since. */
const searched = new WeakMap<readonly StoredRecord[], { readonly places: Map<string, number>; count: number }>();

/**
 * Reports a derived record of a whole log in which the record it was derived from is missing. The record says what it means
 * by itself; what is lost is the source both were read from.
 */
export function reportLostOrigin(
  { record, seq, id }: StoredRecord,
  records: readonly StoredRecord[],
  findings: Finding[],
): void {
  if (record["derivedFrom"] === undefined) return;
  const from = derivedFromOf(record);
  const firstSeq = records[0]?.seq ?? 1;
  // Before the records that were read it may stand well.
  if (from === null || firstSeq > 1 || holds(records, from.id, seq - firstSeq)) return;
  const message = `record ${id} was derived from ${from.id}, which is not in the session`;
  findings.push(createFinding("ORIGIN_MISSING", message, { recordId: id }));
}

/** Only what stands before it counts: what comes later was not what it was derived from. */
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
