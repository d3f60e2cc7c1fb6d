import type { GuardChange, RecordIdsOfMessages } from "./guard-change.ts";
import { findMedia, findResults, replaceAt, replaceMedia, type MediaSlot, type ResultSlot } from "./message-slots.ts";
import { joinParts } from "./shorten-text.ts";
import { reapplyThinking } from "./strip-thinking.ts";

/**
 * Shortens and leaves out again what earlier calls did, with the thinking that is bound to what was there before. A change
 * whose text is no longer there is passed over.
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
    // A result may have been shortened more than once.
    slots.set(key, { ...slot, text });
  }
  const media = indexSlots(findMedia(messages), recordIds);
  const gone = changes.flatMap((change) => {
    const slot = change.what === "media" ? media.get(slotKey(change, change.path ?? [])) : undefined;
    return slot?.sizeBytes === change.beforeBytes ? [slot] : [];
  });
  // From the end, so that the places before stay where they are.
  current = gone.toReversed().reduce<readonly unknown[]>((list, slot) => replaceMedia(list, slot), current);
  // Last, because the places above are those of the blocks as they came.
  return reapplyThinking(current, changes);
}

function hasLength(slot: ResultSlot | undefined, characters: number): boolean {
  return slot?.text.length === characters;
}

/**
 * Where a provider has no call ids, a result is named by its index, which a compaction changes. It is the first such result
 * of the same length then: one that was that long has been too long.
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

/** A record or a call keeps its name when messages before it come or go; an index is the last resort. */
function slotKey(
  { recordId, index, callId }: Pick<GuardChange, "recordId" | "index" | "callId">,
  path: readonly (string | number)[],
): string {
  // The block's place in its message changes when results of several records are merged into one message.
  if (callId !== null) return `call ${callId} ${path.slice(path[2] === "content" ? 2 : 0).join("/")}`;
  return `${recordId === null ? `index ${index}` : `record ${recordId}`} ${path.join("/")}`;
}
