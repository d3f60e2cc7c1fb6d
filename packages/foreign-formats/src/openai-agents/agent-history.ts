import type { AppendDraft, RecordDraft, SourcedRecord } from "@throughline/core";
import { assertKnownOptions, isFields, optionKinds, type Fields, type OptionTable } from "@throughline/core/internal";
import { walkBranch } from "@throughline/history";
import { cutLiveItems, liveNote } from "../live/cut-items.ts";
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

/** Puts a function call in the place of another, wherever that one stands. */
export function replaceAgentCall(
  session: LiveSession,
  { callId, replacement }: { readonly callId: string; readonly replacement: Fields },
  place: LivePlace,
): LiveChange {
  const items = readAgentItems(session);
  const found = items.filter(({ value }) => value["type"] === "function_call" && value["callId"] === callId);
  const byId = new Map(session.records.map((stored) => [stored.id, stored]));
  const drafts: AppendDraft[] = [];
  let headId = place.headId;
  for (const [index, { recordIds }] of found.entries()) {
    const target = byId.get(recordIds.find((id) => holdsCall(byId.get(id), callId)) ?? "");
    if (target === undefined) continue;
    const frame = { id: place.nextId(), parentId: headId, timestamp: place.timestamp, targetId: target.id };
    const content = contentWith(target, callId, index === 0 ? replacement : null, place);
    const record = { type: "context_edit", ...frame, replacement: content.length === 0 ? null : { content } };
    const isOwnItem = index === 0 && target.record["sourceFormat"] === "openai-agents";
    drafts.push(
      isOwnItem
        ? { source: JSON.stringify(replacement), record: { ...record, sourceFormat: "openai-agents" } }
        : record,
    );
    headId = frame.id;
  }
  return { drafts, headId };
}

function holdsCall(stored: SourcedRecord | undefined, callId: string): boolean {
  return contentOf(stored).some((block) => block["type"] === "toolCall" && block["id"] === callId);
}

function contentOf(stored: SourcedRecord | undefined): readonly Fields[] {
  const message = stored?.record["message"];
  return isFields(message) ? listOf(message["content"]).filter(isFields) : [];
}

function contentWith(stored: SourcedRecord, callId: string, call: Fields | null, place: LivePlace): readonly Fields[] {
  const [made] = call === null ? [] : openAiAgentsItems.drafts([call], place);
  const [draft] = made?.drafts ?? [];
  const record = draft !== undefined && "record" in draft ? (draft.record as RecordDraft) : null;
  const blocks = record === null ? [] : listOf((record["message"] as Fields | undefined)?.["content"]).filter(isFields);
  return contentOf(stored).flatMap((block) =>
    block["type"] === "toolCall" && block["id"] === callId ? blocks : [block],
  );
}
