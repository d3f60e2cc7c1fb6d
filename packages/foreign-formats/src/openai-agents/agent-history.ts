import type { AppendDraft, RecordDraft } from "@throughline/core";
import type { SourcedRecord } from "@throughline/core/internal";
import { assertKnownOptions, isFields, optionKinds, type Fields, type OptionTable } from "@throughline/core/internal";
import { walkBranch } from "@throughline/history/internal";
import { cutLiveItems, liveNote } from "../live/cut-items.ts";
import { editedContent } from "../live/edited-content.ts";
import type { LiveChange, LiveItem, LiveItemsOptions, LivePlace, LiveSession } from "../live/live-format.ts";
import { openAiAgentsItems } from "../live/live-formats.ts";

/** What a session's history begins with after the SDK compacted it: its items, those of the log by their records. */
const compactionType = "openai-agents.compaction";

const table: OptionTable<LiveItemsOptions> = { onLoss: optionKinds.callback, repaired: optionKinds.flag };

/** The items of a session as the OpenAI Agents SDK is to see them. @throws {ThroughlineError} INPUT_INVALID for an option */
export function readAgentItems(session: LiveSession, options: LiveItemsOptions = {}): readonly LiveItem[] {
  assertKnownOptions<LiveItemsOptions>("readAgentItems", options, table);
  const items = openAiAgentsItems.items(session, options);
  const boundary = boundaryOf(session);
  return boundary === undefined ? items : afterBoundary(boundary, items, session);
}

/** The note that says with which items the history begins; undefined for one that was never compacted. */
function boundaryOf({ records, headId }: LiveSession): SourcedRecord | undefined {
  const notes = records.filter(({ side, record }) => side && isCompaction(record));
  if (notes.length === 0) return undefined;
  const { path } = walkBranch(records, headId);
  const onPath = new Set(path.map(({ id }) => id));
  // A context that was cleared or summarized since then begins with something else.
  const sinceSeq = path.findLast(({ type }) => type === "reset" || type === "compaction")?.seq ?? 0;
  return notes.findLast(({ parentId, seq }) => seq > sinceSeq && (parentId === null || onPath.has(parentId)));
}

function dataOf(record: SourcedRecord["record"]): Fields {
  return isFields(record["data"]) ? record["data"] : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function afterBoundary(boundary: SourcedRecord, items: readonly LiveItem[], session: LiveSession): readonly LiveItem[] {
  const seqs = new Map(session.records.map(({ id, seq }) => [id, seq]));
  const byName = new Map(namesOf(items).map((name, at) => [name, items[at] as LiveItem]));
  const kept = listOf(dataOf(boundary.record)["items"]).flatMap((one): readonly LiveItem[] => {
    if (!isFields(one)) return [];
    if (isFields(one["item"])) return [{ value: one["item"], recordIds: [boundary.id], isNative: true, source: null }];
    // A record that was redacted meanwhile is not here any more.
    const item = byName.get(nameOf(one["recordId"], one["index"]));
    return item === undefined ? [] : [item];
  });
  const later = items.filter(({ recordIds: [id] }) => id !== undefined && (seqs.get(id) ?? 0) > boundary.seq);
  return [...kept, ...later];
}

/** An item by its record, and by which of its record's items it is. */
function nameOf(recordId: unknown, index: unknown): string {
  return `${String(recordId)} ${Number(index ?? 0)}`;
}

function namesOf(items: readonly LiveItem[]): readonly string[] {
  const counts = new Map<string, number>();
  return items.map(({ recordIds: [id = ""] }) => {
    const index = counts.get(id) ?? 0;
    counts.set(id, index + 1);
    return nameOf(id, index);
  });
}

/**
 * The note that history begins with these items from now on. Items that the log holds are named, not copied: what is redacted
 * there is gone here too.
 */
export function compactAgentItems(
  items: readonly Fields[],
  current: readonly LiveItem[],
  place: LivePlace,
): LiveChange {
  const notes = new Set((place.records ?? []).flatMap(({ id, record }) => (isCompaction(record) ? [id] : [])));
  const names = namesOf(current);
  const places = new Map<string, string[]>();
  for (const [at, { value, recordIds }] of current.entries()) {
    if (recordIds[0] === undefined || notes.has(recordIds[0])) continue;
    const text = JSON.stringify(value);
    places.set(text, [...(places.get(text) ?? []), names[at] as string]);
  }
  const named = items.map((item) => {
    const name = places.get(JSON.stringify(item))?.shift();
    if (name === undefined) return { item };
    const [recordId, index] = [name.slice(0, name.lastIndexOf(" ")), Number(name.slice(name.lastIndexOf(" ") + 1))];
    return index === 0 ? { recordId } : { recordId, index };
  });
  return { drafts: [liveNote(compactionType, { items: named }, place)], headId: place.headId };
}

function isCompaction(record: SourcedRecord["record"]): boolean {
  return record["customType"] === compactionType;
}

/** Takes back the items behind the first `keep`. Nothing is erased: the log keeps what was there. */
export function cutAgentItems(
  session: LiveSession,
  items: readonly LiveItem[],
  keep: number,
  place: LivePlace,
): LiveChange {
  const boundary = boundaryOf(session);
  const removed = items.slice(keep).flatMap(({ recordIds }) => recordIds);
  const byId = new Map(session.records.map((stored) => [stored.id, stored]));
  const isBefore = (id: string): boolean => (byId.get(id)?.seq ?? Number.POSITIVE_INFINITY) <= (boundary?.seq ?? 0);
  if (!removed.some(isBefore)) return cutLiveItems(openAiAgentsItems.name, session, items, keep, place);
  // What began a compacted history is written again without what goes; for others it is edited out.
  let headId = place.headId;
  const edits = removed.flatMap((targetId) => {
    if (byId.get(targetId)?.side !== false) return [];
    const frame = { id: place.nextId(), parentId: headId, timestamp: place.timestamp };
    headId = frame.id;
    return [{ type: "context_edit", ...frame, targetId, replacement: null }];
  });
  const kept = items.slice(0, keep);
  const values = kept.map(({ value }) => value);
  const { drafts } = compactAgentItems(values, kept, { ...place, headId });
  return { drafts: [...edits, ...drafts], headId };
}

/** Puts a function call in the place of another, wherever that one stands. Others with its id go. */
export function replaceAgentCall(
  session: LiveSession,
  { callId, replacement }: { readonly callId: string; readonly replacement: Fields },
  place: LivePlace,
): LiveChange {
  const items = readAgentItems(session);
  const isFound = ({ value }: LiveItem): boolean => value["type"] === "function_call" && value["callId"] === callId;
  const found = items.filter(isFound);
  const path = walkBranch(session.records, session.headId).path as readonly SourcedRecord[];
  const byId = new Map(session.records.map((stored) => [stored.id, stored]));
  const holds = (id: string): boolean => editedContent(byId.get(id), path).some((block) => isCall(block, callId));
  const targets = found.map(({ recordIds }) => recordIds.find(holds));
  if (targets.includes(undefined)) return replacedInBoundary(items, { isFound, replacement }, place);
  const drafts: AppendDraft[] = [];
  let headId = place.headId;
  let blocks = blocksOf(replacement, place);
  for (const [at, id] of [...new Set(targets)].entries()) {
    const target = byId.get(id as string) as SourcedRecord;
    const content = editedContent(target, path).flatMap((block) => {
      if (!isCall(block, callId)) return [block];
      const put = blocks;
      blocks = [];
      return put;
    });
    const frame = { id: place.nextId(), parentId: headId, timestamp: place.timestamp, targetId: target.id };
    const record = { type: "context_edit", ...frame, replacement: content.length === 0 ? null : { content } };
    const isOwnItem = at === 0 && target.record["sourceFormat"] === "openai-agents";
    drafts.push(
      isOwnItem
        ? { source: JSON.stringify(replacement), record: { ...record, sourceFormat: "openai-agents" } }
        : record,
    );
    headId = frame.id;
  }
  return { drafts, headId };
}

/** A call of a compacted history, which no record of the conversation holds: the history begins with the changed items. */
function replacedInBoundary(
  items: readonly LiveItem[],
  { isFound, replacement }: { readonly isFound: (item: LiveItem) => boolean; readonly replacement: Fields },
  place: LivePlace,
): LiveChange {
  const first = items.findIndex(isFound);
  const values = items.flatMap((item, at) => (at === first ? [replacement] : isFound(item) ? [] : [item.value]));
  return compactAgentItems(values, items, place);
}

function isCall(block: unknown, callId: string): boolean {
  return isFields(block) && block["type"] === "toolCall" && block["id"] === callId;
}

/** The blocks that a call is in a message of ours. */
function blocksOf(call: Fields, place: LivePlace): readonly unknown[] {
  const [draft] = openAiAgentsItems.drafts([call], place)[0]?.drafts ?? [];
  const record = draft !== undefined && "record" in draft ? (draft.record as RecordDraft) : null;
  return record === null ? [] : listOf((record["message"] as Fields | undefined)?.["content"]);
}
