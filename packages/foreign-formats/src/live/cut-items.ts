import type { AppendDraft, RecordDraft } from "@throughline/core";
import type { SourcedRecord } from "@throughline/core/internal";
import { isFields, type Fields } from "@throughline/core/internal";
import { walkBranch } from "@throughline/history";
import { editedContent } from "./edited-content.ts";
import type { LiveChange, LiveItem, LivePlace, LiveSession } from "./live-format.ts";

/** Returns the type of the note that names removed items whose records are on no branch. */
export function removedTypeOf(format: string): string {
  return `${format}.removed`;
}

/** Returns the draft of a side record, which belongs to no branch. */
export function liveNote(customType: string, data: Fields, { nextId, headId, timestamp }: LivePlace): RecordDraft {
  return { type: "custom", customType, appendMode: "side", id: nextId(), parentId: headId, timestamp, data };
}

/** Removes the items after the first `keep` from the conversation. Nothing is erased: the log keeps the records. */
export function cutLiveItems(
  format: string,
  session: LiveSession,
  items: readonly LiveItem[],
  keep: number,
  place: LivePlace,
): LiveChange {
  const removed = items.slice(keep);
  if (removed.length === 0) return { drafts: [], headId: place.headId };
  const byId = new Map(session.records.map((stored) => [stored.id, stored]));
  const path = (walkBranch(session.records, session.headId).path as readonly SourcedRecord[]).filter(
    ({ side }) => !side,
  );
  const keptIds = new Set(items.slice(0, keep).flatMap(({ recordIds }) => recordIds));
  const isOnBranch = (id: string): boolean => byId.get(id)?.side === false;
  const goes = removed.flatMap(({ recordIds }) => recordIds).filter((id) => !keptIds.has(id));
  const first = path.find(({ id }) => goes.includes(id));
  const before = first === undefined ? null : (path[path.indexOf(first) - 1] ?? null);
  const shared = removed[0]?.recordIds.findLast((id) => keptIds.has(id) && isOnBranch(id));
  const sideIds = goes.filter((id) => !isOnBranch(id));
  // The note follows the new branch's head: on the abandoned branch, no reader would find it.
  const notesBehind = (headId: string | null): readonly RecordDraft[] =>
    sideIds.length === 0 ? [] : [liveNote(removedTypeOf(format), { ids: sideIds }, { ...place, headId })];
  if (shared !== undefined) {
    const edits = keptEdits(path, path.findIndex(({ id }) => id === shared) + 1, { ...place, headId: shared });
    const others = { ...place, headId: edits.at(-1)?.id ?? shared };
    const edit = partlyCut(byId.get(shared) as SourcedRecord, path, removed, others);
    const drafts = [...edits.map(({ draft }) => draft), edit, ...notesBehind(edit.id as string)];
    return { drafts, headId: edit.id as string };
  }
  if (first === undefined) return { drafts: notesBehind(place.headId), headId: place.headId };
  const targetId = before?.id ?? null;
  const leaf = { type: "leaf", id: place.nextId(), parentId: place.headId, timestamp: place.timestamp, targetId };
  const edits = keptEdits(path, path.indexOf(first), { ...place, headId: targetId });
  const headId = edits.at(-1)?.id ?? targetId;
  const drafts = [leaf, ...edits.map(({ draft }) => draft), ...notesBehind(headId)];
  return edits.length > 0 ? { drafts, headId } : { drafts, rewindTo: targetId, headId };
}

/**
 * Edits after this position that change earlier records must be repeated on the new branch. Only the last edit of each
 * record counts.
 */
function keptEdits(
  path: readonly SourcedRecord[],
  from: number,
  place: LivePlace,
): readonly { readonly id: string; readonly draft: AppendDraft }[] {
  const kept = new Set<unknown>(path.slice(0, from).map(({ id }) => id));
  const last = new Map<unknown, SourcedRecord>();
  for (const stored of path.slice(from)) {
    const { targetId } = stored.record;
    if (stored.type === "context_edit" && kept.has(targetId)) last.set(targetId, stored);
  }
  let parentId = place.headId;
  return [...last.values()].map(({ record, source, isSourceCanonical }) => {
    const { id: _id, parentId: _parentId, ...fields } = record;
    const edit: RecordDraft = { ...fields, id: place.nextId(), parentId, timestamp: place.timestamp };
    parentId = edit.id as string;
    // An edit that holds an item of the program keeps the item as its source, so that the item is returned unchanged.
    return { id: parentId, draft: isSourceCanonical ? edit : { source, record: edit } };
  });
}

/** A record of another program may give several items. An edit removes only the last of them. */
function partlyCut(
  stored: SourcedRecord,
  path: readonly SourcedRecord[],
  removed: readonly LiveItem[],
  place: LivePlace,
): RecordDraft {
  const own = removed.filter(({ recordIds }) => recordIds.includes(stored.id)).map(({ value }) => value);
  const callIds = new Set(own.map(({ callId }) => callId));
  const goesText = own.some(({ type }) => type === "message");
  const content = editedContent(stored, path).filter(
    (block) =>
      isFields(block) &&
      !(block["type"] === "toolCall" ? callIds.has(block["id"]) : goesText && block["type"] === "text"),
  );
  const replacement = content.length === 0 ? null : { content };
  const frame = { id: place.nextId(), parentId: place.headId, timestamp: place.timestamp };
  return { type: "context_edit", ...frame, targetId: stored.id, replacement };
}
