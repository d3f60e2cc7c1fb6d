import type { AppendDraft, RecordDraft } from "@throughline/core";
import type { SourcedRecord } from "@throughline/core/internal";
import { assertKnownOptions, isFields, optionKinds, type Fields, type OptionTable } from "@throughline/core/internal";
import { walkBranch } from "@throughline/history";
import { cutLiveItems, liveNote } from "../live/cut-items.ts";
import { editedContent } from "../live/edited-content.ts";
import type { LiveChange, LiveItem, LiveItemsOptions, LivePlace, LiveSession } from "../live/live-format.ts";
import { openAiAgentsItems } from "../live/live-formats.ts";

/**
 * The history of a compacted session begins with this note. It names items of the log by their records, and holds the
 * others.
 */
const compactionType = "openai-agents.compaction";

const table: OptionTable<LiveItemsOptions> = { onLoss: optionKinds.callback, repaired: optionKinds.flag };

/**
 * Returns the items of a session in the form of the OpenAI Agents SDK.
 * @throws {ThroughlineError} INPUT_INVALID for a wrong option
 */
export function readAgentItems(session: LiveSession, options: LiveItemsOptions = {}): readonly LiveItem[] {
  assertKnownOptions<LiveItemsOptions>("readAgentItems", options, table);
  const items = openAiAgentsItems.items(session, options);
  const boundary = boundaryOf(session);
  return boundary === undefined ? items : afterBoundary(boundary, items, session);
}

/** The note states the items that the history begins with. Undefined means that the history was never compacted. */
function boundaryOf({ records, headId }: LiveSession): SourcedRecord | undefined {
  const notes = records.filter(({ side, record }) => side && isCompaction(record));
  if (notes.length === 0) return undefined;
  const { path } = walkBranch(records, headId);
  const onPath = new Set(path.map(({ id }) => id));
  // A context that was cleared or summarized since then has another beginning, so older notes are ignored.
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
    // A record that was redacted since then is absent, so its item is skipped.
    const item = byName.get(nameOf(one["recordId"], one["index"]));
    return item === undefined ? [] : [item];
  });
  const later = items.filter(({ recordIds: [id] }) => id !== undefined && (seqs.get(id) ?? 0) > boundary.seq);
  return [...kept, ...later];
}

/** One record may give several items, so the name includes the item's index. */
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
 * Returns the note that makes the history begin with these items. Items of the log are named and not copied, so that a
 * redaction of them takes effect here too.
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

/** Removes the items after the first `keep` from the conversation. Nothing is erased: the log keeps the records. */
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
  // The note of the compacted history is written again without the removed items. Edits remove them for other programs.
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

/** Replaces a function call wherever it stands. Further calls with its id are removed. */
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

/**
 * No record of the conversation holds a call of a compacted history, so a new note with the changed items replaces the
 * history's beginning.
 */
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

function blocksOf(call: Fields, place: LivePlace): readonly unknown[] {
  const [draft] = openAiAgentsItems.drafts([call], place)[0]?.drafts ?? [];
  const record = draft !== undefined && "record" in draft ? (draft.record as RecordDraft) : null;
  return record === null ? [] : listOf((record["message"] as Fields | undefined)?.["content"]);
}
