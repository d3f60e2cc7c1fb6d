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
    const key = slotKey(change, change.path ?? []);
    const slot = slots.get(key);
    if (slot?.text.length !== kept.ofCharacters) continue;
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
