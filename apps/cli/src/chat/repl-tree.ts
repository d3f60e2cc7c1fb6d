import type { StoredRecord } from "@throughline/core";
import { isFields, messageRole, recordText, systemClock } from "@throughline/core/internal";
import { withinMemory } from "@throughline/core/internal/node";
import { readTail } from "@throughline/history/internal";
import { beforeMessage, moveStoredHead, readBranchPlace, rewound } from "@throughline/session/internal";
import { grouped } from "../counted.ts";
import { pickChoice } from "../picker/choice-picker.ts";
import type { ReplContext } from "./repl-context.ts";

interface Place {
  readonly stored: StoredRecord;
  /** Counts the turns off the first branch. */
  readonly depth: number;
}

/** A person reads through no more records than these. */
const mostRecords = 5000;

/** Handles `/tree`: goes to a reply of any branch, or before a message of the person, whose text returns to the editor. */
export async function goInTree(repl: ReplContext): Promise<void> {
  const { context, conversation } = repl;
  const { output, signal } = context;
  const { session, store, ref } = conversation;
  if (session === null) return output.line("There are no messages yet.");
  await session.refresh();
  const { head } = session;
  const selection = { isAll: true, isAllBranches: true, afterSeq: 0, role: null, tail: mostRecords };
  const records = await readTail(withinMemory(store), ref, { head, selection, roleOf: () => null }, signal);
  const places = treeOf(records).filter(({ stored }) => isPlace(stored));
  const current = branchOf(records, head.headId);
  const first = places.findLastIndex(({ stored }) => current.has(stored.id));
  const choices = places.map(({ stored, depth }) => ({
    text: `${"  ".repeat(Math.min(depth, 8))}${isOwn(stored) ? "> " : ""}${recordText(stored.record)}`,
    note: current.has(stored.id) ? "here" : "",
  }));
  const isCut = records.length === mostRecords && records[0]?.seq !== 1;
  const title = isCut ? `Where to go, among the newest ${grouped(mostRecords)} records` : "Where to go";
  const list = { title, choices, first: Math.max(0, first) };
  const chosen = await repl.givenAway(() => pickChoice(context, list));
  const to = chosen === null ? undefined : places[chosen]?.stored;
  if (to === undefined) return output.line("Nothing was changed.");
  const place = await readBranchPlace({ store, ref, clock: systemClock, signal });
  await moveStoredHead(place, isOwn(to) ? beforeMessage(to.id) : rewound(to.id));
  await session.refresh();
  if (isOwn(to)) repl.giveBack(recordText(to.record));
  await repl.showEnd();
  await output.line("You are there. `/tree` leads back; files stay as they are.");
}

/** Returns the ids of the records that lead to the head, as far as they are here. */
export function branchOf(records: readonly StoredRecord[], headId: string | null): ReadonlySet<string> {
  const parents = new Map(records.map(({ id, parentId }) => [id, parentId]));
  const branch = new Set<string>();
  for (let id = headId; id !== null && parents.has(id) && !branch.has(id); id = parents.get(id) ?? null) branch.add(id);
  return branch;
}

/** Orders records so that a branch stands below where it begins, and before what follows there on the first branch. */
export function treeOf(records: readonly StoredRecord[]): readonly Place[] {
  const known = new Set(records.map(({ id }) => id));
  const children = Map.groupBy(
    records.filter(({ side }) => !side),
    ({ parentId }) => (parentId !== null && known.has(parentId) ? parentId : null),
  );
  const open = branchesAt(children, null, 0);
  const places: Place[] = [];
  for (let place = open.pop(); place !== undefined; place = open.pop()) {
    places.push(place);
    for (const next of branchesAt(children, place.stored.id, place.depth)) open.push(next);
  }
  return places;
}

/** Returns what follows here, the last to be shown first. */
function branchesAt(children: ReadonlyMap<string | null, StoredRecord[]>, at: string | null, depth: number): Place[] {
  return (children.get(at) ?? []).map((stored, index) => ({ stored, depth: depth + (index > 0 ? 1 : 0) }));
}

/** A reply that calls tools is no place: its results would be missing. */
function isPlace({ type, record }: StoredRecord): boolean {
  if (type !== "message") return false;
  const role = messageRole(record);
  const { message } = record;
  // A correction asks for another form of an answer, and no person wrote it.
  if (role === "user")
    return recordText(record).trim() !== "" && !(isFields(message) && message["source"] === "correction");
  return role === "assistant" && isFields(message) && message["stopReason"] !== "toolUse";
}

function isOwn({ record }: StoredRecord): boolean {
  return messageRole(record) === "user";
}
