import type { GuardChange, RecordIdsOfMessages } from "./guard-change.ts";
import { findMedia, findResults, replaceAt, replaceMedia, type MediaSlot, type ResultSlot } from "./message-slots.ts";
import { joinParts } from "./shorten-text.ts";
import { reapplyThinking } from "./strip-thinking.ts";

/**
 * Applies the changes of earlier calls again: shortens tool results, leaves media out, and removes thinking. A change
 * whose original text is no longer in the messages is skipped.
 */
export function applyChanges(
  messages: readonly unknown[],
  changes: readonly GuardChange[],
  recordIds: RecordIdsOfMessages = [],
): readonly unknown[] {
  if (changes.length === 0) return messages;
  let current = messages;
  const slots = indexSlots(findResults(messages), recordIds);
  for (const { kept, ...change } of changes) {
    if (change.what !== "tool-result" || kept === undefined) continue;
    const named = slotKey(change, change.path ?? []);
    const key = hasLength(slots.get(named), kept.ofCharacters) ? named : movedSlot(change, kept.ofCharacters, slots);
    const slot = key === null ? undefined : slots.get(key);
    if (key === null || slot === undefined) continue;
    const text = joinParts(slot.text, kept.headCharacters, kept.tailCharacters);
    current = replaceAt(current, slot, text);
    // Another change may have shortened the same result before, so the next change must see the shortened text.
    slots.set(key, { ...slot, text });
  }
  const media = indexSlots(findMedia(messages), recordIds);
  const gone = changes.flatMap((change) => {
    const slot = change.what === "media" ? media.get(slotKey(change, change.path ?? [])) : undefined;
    return slot?.sizeBytes === change.beforeBytes ? [slot] : [];
  });
  // Media are removed from the end, so that the positions of earlier blocks stay valid.
  current = gone.toReversed().reduce<readonly unknown[]>((list, slot) => replaceMedia(list, slot), current);
  // Thinking is removed last, because the positions above refer to the blocks as they arrived.
  return reapplyThinking(current, changes);
}

function hasLength(slot: ResultSlot | undefined, characters: number): boolean {
  return slot?.text.length === characters;
}

/**
 * Without call ids a result is identified by its index, and a compaction shifts indexes. The fallback is the first
 * result at the same path with the same length. Length is enough, because a result of this length was too long before.
 */
function movedSlot(
  { recordId, callId, path = [] }: GuardChange,
  characters: number,
  slots: ReadonlyMap<string, ResultSlot>,
): string | null {
  if (recordId !== null || callId !== null) return null;
  const place = path.join("/");
  for (const [key, slot] of slots) {
    if (slot.callId === null && hasLength(slot, characters) && slot.path.join("/") === place) return key;
  }
  return null;
}

function indexSlots<Slot extends ResultSlot | MediaSlot>(
  slots: readonly Slot[],
  recordIds: RecordIdsOfMessages,
): Map<string, Slot> {
  return new Map(
    slots.map((slot) => {
      const callId = "callId" in slot ? slot.callId : null;
      return [slotKey({ recordId: recordIds[slot.index] ?? null, index: slot.index, callId }, slot.path), slot];
    }),
  );
}

/** A record id or a call id stays the same when messages before it come or go. The index is the last resort. */
function slotKey(
  { recordId, index, callId }: Pick<GuardChange, "recordId" | "index" | "callId">,
  path: readonly (string | number)[],
): string {
  // The position of a block in its message changes when the results of several records are merged into one message.
  if (callId !== null) return `call ${callId} ${path.slice(path[2] === "content" ? 2 : 0).join("/")}`;
  return `${recordId === null ? `index ${index}` : `record ${recordId}`} ${path.join("/")}`;
}
