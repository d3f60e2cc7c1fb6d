import { isFields, type Steps, throughlineKind } from "@throughline/core/internal";
import type { StoredRecord } from "@throughline/core";
import { createParentFinder } from "./walk-branch.ts";

/** Shows which messages of a log are alternatives to each other, and where each of them led. */
export interface MessageTree {
  /**
   * Returns the messages of users and models that follow the same message as the one with this seq, itself included, in
   * order of seq. Records of other types between them do not count. Empty when no such message has the seq.
   */
  siblings(seq: number): readonly StoredRecord[];
  /** Returns the newest main record behind the main record with this seq, or that record itself; null without one. */
  newest(seq: number): StoredRecord | null;
}

/** Groups all records of a session in one pass, one record per step. Damaged parents count as in `walkBranch`. */
export function* messageTreeSteps(records: readonly StoredRecord[]): Steps<MessageTree> {
  const parentOf = createParentFinder(records, []);
  const parents = new Map<number, number>();
  const places = new Map<number, number>();
  const followers = new Map<number, StoredRecord[]>();
  const groups = new Map<number, readonly StoredRecord[]>();
  for (let index = 0; index < records.length; index++) {
    yield;
    const stored = records[index] as StoredRecord;
    if (stored.side) continue;
    const parent = parentOf(index);
    parents.set(index, parent);
    const before = placeOf(parent, { records, places, parentOf });
    if (!isAlternative(stored)) continue;
    const group = followers.get(before) ?? [];
    group.push(stored);
    followers.set(before, group);
    groups.set(stored.seq, group);
  }
  const newest = new Map<number, StoredRecord>();
  for (let index = records.length - 1; index >= 0; index--) {
    yield;
    const stored = records[index] as StoredRecord;
    if (stored.side) continue;
    const last = newest.get(stored.seq) ?? stored;
    newest.set(stored.seq, last);
    const parent = records[parents.get(index) ?? -1];
    if (parent !== undefined && (newest.get(parent.seq) ?? parent).seq < last.seq) newest.set(parent.seq, last);
  }
  return { siblings: (seq) => groups.get(seq) ?? [], newest: (seq) => newest.get(seq) ?? null };
}

interface TreeWalk {
  readonly records: readonly StoredRecord[];
  /** Holds the index of the message at or above a record, by the index of the record. */
  readonly places: Map<number, number>;
  readonly parentOf: (index: number) => number;
}

/** Returns the index of the nearest message at or above a record; -1 without one. A cycle counts as the beginning. */
function placeOf(index: number, { records, places, parentOf }: TreeWalk): number {
  const way: number[] = [];
  let at = index;
  while (at >= 0 && !places.has(at)) {
    places.set(at, -1);
    way.push(at);
    at = isMessage(records[at] as StoredRecord) ? -1 : parentOf(at);
  }
  let place = at < 0 ? -1 : (places.get(at) as number);
  for (const passed of way.toReversed()) {
    if (isMessage(records[passed] as StoredRecord)) place = passed;
    places.set(passed, place);
  }
  return place;
}

/** A redacted message keeps its place. */
function isMessage({ type, side, record }: StoredRecord): boolean {
  if (side) return false;
  if (type === "message") return true;
  const { data } = record;
  return throughlineKind(record) === "redaction" && isFields(data) && data["originalType"] === "message";
}

/** Results of tools are no alternatives: some programs store the results of one reply beside each other. */
function isAlternative(stored: StoredRecord): boolean {
  const { message } = stored.record;
  return isMessage(stored) && (!isFields(message) || message["role"] === "user" || message["role"] === "assistant");
}
