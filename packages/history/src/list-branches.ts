import type { StoredRecord } from "@throughline/core";
import { runSteps } from "@throughline/core/internal";
import { walkSteps } from "./walk-branch.ts";

/** A way through the records that ends where nothing follows. */
export interface Branch {
  /** Its last record: give it to `buildContext` to read the branch, to `rewind` to go back to it. */
  readonly headId: string;
  /** The seq of its last record. */
  readonly headSeq: number;
  /** The time of its last record in milliseconds since 1970; null where the record states none. */
  readonly tsMs: number | null;
  /** The last record it shares with the current branch; null when it shares none. */
  readonly forkId: string | null;
  /** Main records after that one. */
  readonly ownRecords: number;
  /** True for the branch that the head is on. */
  readonly isCurrent: boolean;
}

/** All branches, the current one first, then the newest first. One pass, whatever the number of branches. */
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

/** Walks up to what is known already, and remembers the way. */
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
