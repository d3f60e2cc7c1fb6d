import type { StoredRecord } from "@throughline/core";
import { runSteps } from "@throughline/core/internal";
import { walkSteps } from "./walk-branch.ts";

/** Describes a path through the records that ends at a record without children. */
export interface Branch {
  /** States the last record. Pass it to `buildContext` to read the branch, or to `rewind` to return to it. */
  readonly headId: string;
  /** States the seq of the last record. */
  readonly headSeq: number;
  /** States the time of the last record in milliseconds since 1970; null if the record states none. */
  readonly tsMs: number | null;
  /** States the last record that the branch shares with the current branch; null if they share none. */
  readonly forkId: string | null;
  /** Counts the main records after the shared one. */
  readonly ownRecords: number;
  /** Is true for the branch of the head. */
  readonly isCurrent: boolean;
}

/**
 * Lists all branches, the current one first, then the newest first. It makes one pass, regardless of the number of
 * branches.
 */
export function listBranches(records: readonly StoredRecord[], headId: string | null): readonly Branch[] {
  const { indexes } = runSteps(walkSteps(records, headId));
  const forks = new Map<string, Fork>();
  for (const index of indexes) {
    const { id } = records[index] as StoredRecord;
    forks.set(id, { forkId: id, ownRecords: 0 });
  }
  const current = records[indexes.at(-1) ?? -1];
  const parents = new Set<string | null>();
  const places = new Map<string, StoredRecord>();
  for (const stored of records) {
    if (stored.side) continue;
    parents.add(stored.parentId);
    places.set(stored.id, stored);
  }
  const branches: Branch[] =
    current === undefined ? [] : [branchOf(current, { forkId: current.id, ownRecords: 0 }, true)];
  const leaves = records.filter(({ id, side }) => !side && !parents.has(id) && id !== current?.id);
  for (const leaf of leaves.toReversed()) branches.push(branchOf(leaf, forkOf(leaf, places, forks), false));
  return branches;
}

interface Fork {
  readonly forkId: string | null;
  readonly ownRecords: number;
}

function branchOf({ id, seq, tsMs }: StoredRecord, fork: Fork, isCurrent: boolean): Branch {
  return { headId: id, headSeq: seq, tsMs, ...fork, isCurrent };
}

/** Walks up to the first known record and caches the path, so that each record is visited once. */
function forkOf(leaf: StoredRecord, places: ReadonlyMap<string, StoredRecord>, forks: Map<string, Fork>): Fork {
  const way: string[] = [];
  const seen = new Set<string>();
  let at: StoredRecord | undefined = leaf;
  while (at !== undefined && !forks.has(at.id) && !seen.has(at.id)) {
    seen.add(at.id);
    way.push(at.id);
    at = at.parentId === null ? undefined : places.get(at.parentId);
  }
  let fork: Fork = (at === undefined ? undefined : forks.get(at.id)) ?? { forkId: null, ownRecords: 0 };
  for (const id of way.toReversed()) {
    fork = { forkId: fork.forkId, ownRecords: fork.ownRecords + 1 };
    forks.set(id, fork);
  }
  return fork;
}
