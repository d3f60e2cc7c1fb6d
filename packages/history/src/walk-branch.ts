import { createFinding, runSteps, type Steps } from "@throughline/core/internal";
import type { Finding, StoredRecord } from "@throughline/core";

/** Holds the records from the root to the head, and irregularities on the way. */
interface BranchWalk {
  /** Lists the records of the path, root first. */
  readonly path: readonly StoredRecord[];
  /** Lists irregularities on the way, such as a cycle or a missing parent. */
  readonly findings: readonly Finding[];
}

/**
 * Follows `parentId` from the head to the root. Every walk ends. A cycle, a record that is its own parent, a duplicate
 * id or a missing parent gives a finding and still a path.
 *
 * @param records in order of seq: the whole log, or its end (`readWindow`); then the walk ends where the window begins
 * @param headId null gives an empty path; an unknown id stands for the last main record
 */
export function walkBranch(records: readonly StoredRecord[], headId: string | null): BranchWalk {
  const { indexes, findings } = runSteps(walkSteps(records, headId));
  return { path: indexes.map((index) => records[index] as StoredRecord), findings };
}

export interface IndexWalk {
  readonly indexes: readonly number[];
  readonly findings: Finding[];
}

/** Walks the same path by positions, one record per step, so that a long log does not block the process. */
export function* walkSteps(records: readonly StoredRecord[], headId: string | null): Steps<IndexWalk> {
  const findings: Finding[] = [];
  const indexes: number[] = [];
  let index = headId === null ? -1 : findHead(records, headId, findings);
  const findParent = createParentFinder(records, findings);
  // An earlier record cannot lead back here. Only a parent that was stored after its child can close a cycle.
  let visited: Set<number> | null = null;
  while (index >= 0) {
    yield;
    indexes.push(index);
    visited?.add(index);
    const parent = findParent(index);
    if (parent > index) visited ??= new Set(indexes);
    if (visited?.has(parent)) {
      const { id, parentId } = records[index] as StoredRecord;
      findings.push(
        createFinding("PARENT_CYCLE", `record ${id} leads back to ${parentId}, which was walked already`, {
          recordId: id,
        }),
      );
      break;
    }
    index = parent;
  }
  indexes.reverse();
  return { indexes, findings };
}

function findHead(records: readonly StoredRecord[], headId: string, findings: Finding[]): number {
  const index = records.findLastIndex((record) => record.id === headId);
  if (index >= 0) return index;
  findings.push(
    createFinding("HEAD_UNKNOWN", `no record has the id of the head, ${headId}`, { recordId: headId, repaired: true }),
  );
  return records.findLastIndex((record) => !record.side);
}

/**
 * A parent is searched this far back before a map of all ids is built. Only side records lie between a main record and
 * its parent.
 */
const nearbyRecords = 16;

export function createParentFinder(records: readonly StoredRecord[], findings: Finding[]): (index: number) => number {
  let places: ReadonlyMap<string, number | number[]> | null = null;
  return (index) => {
    const { id, parentId } = records[index] as StoredRecord;
    if (parentId === null) return -1;
    for (let near = index - 1; near >= 0 && near >= index - nearbyRecords; near--) {
      if (records[near]?.id === parentId) return near;
    }
    places ??= mapPlaces(records);
    const found = nearestPlace(places.get(parentId), index);
    if (found !== null) {
      if (Array.isArray(places.get(parentId))) findings.push(duplicate(parentId, id));
      return found;
    }
    return attach(records, index, findings);
  };
}

function mapPlaces(records: readonly StoredRecord[]): Map<string, number | number[]> {
  const places = new Map<string, number | number[]>();
  for (let index = 0; index < records.length; index++) {
    const { id } = records[index] as StoredRecord;
    const held = places.get(id);
    if (held === undefined) places.set(id, index);
    else if (typeof held === "number") places.set(id, [held, index]);
    else held.push(index);
  }
  return places;
}

/**
 * Picks the nearest duplicate before the child, because the child's writer saw that one last. It picks a later one only
 * if none lies before.
 */
function nearestPlace(held: number | number[] | undefined, index: number): number | null {
  if (held === undefined) return null;
  if (typeof held === "number") return held === index ? null : held;
  let low = 0;
  let high = held.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((held[middle] as number) < index) low = middle + 1;
    else high = middle;
  }
  const after = held[low] === index ? low + 1 : low;
  return held[low - 1] ?? held[after] ?? null;
}

function duplicate(id: string, childId: string): Finding {
  const message = `several records have the id ${id}; for ${childId} the nearest one before it counts`;
  return createFinding("DUPLICATE_ID", message, { recordId: id, repaired: true });
}

function attach(records: readonly StoredRecord[], index: number, findings: Finding[]): number {
  const { id, parentId } = records[index] as StoredRecord;
  let previous = index - 1;
  while (previous >= 0 && records[previous]?.side === true) previous--;
  if (parentId === id) {
    findings.push(
      createFinding("SELF_PARENT", `record ${id} names itself as its parent`, { recordId: id, repaired: true }),
    );
    return previous;
  }
  const isWindow = (records[0]?.seq ?? 1) > 1;
  if (isWindow) {
    // The parent lies below the window. For the first main record this is expected. For a later record, the branch of
    // the head left the window, and the preceding records belong to another branch. A context that is too short is
    // better than a wrong one.
    if (previous >= 0) {
      const message = `the parent of record ${id}, ${parentId}, lies before the records that were read`;
      findings.push(createFinding("ORPHAN_PARENT", message, { recordId: id }));
    }
    return -1;
  }
  findings.push(
    createFinding("ORPHAN_PARENT", `no record has the id ${parentId}, the parent of ${id}`, {
      recordId: id,
      repaired: true,
    }),
  );
  return previous;
}
