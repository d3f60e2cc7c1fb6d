import type { GuardChange, RecordIdsOfMessages } from "./guard-change.ts";
import { findMedia, replaceMedia } from "./message-slots.ts";
import type { Shrunk } from "./truncate-results.ts";

/**
 * Removes images and files, oldest first, until `overBytes` are saved. Null means an unknown amount. Then the media of
 * the newest message that has any stay, unless no other message has media.
 */
export function leaveOutMedia(
  messages: readonly unknown[],
  overBytes: number | null,
  recordIds: RecordIdsOfMessages,
): Shrunk {
  const slots = findMedia(messages);
  const newest = slots.at(-1)?.index;
  const older = slots.filter(({ index }) => index !== newest);
  const changes: GuardChange[] = [];
  const gone = [];
  let saved = 0;
  for (const slot of overBytes === null && older.length > 0 ? older : slots) {
    if (overBytes !== null && saved >= overBytes) break;
    saved += slot.sizeBytes;
    gone.push(slot);
    changes.push({
      recordId: recordIds[slot.index] ?? null,
      index: slot.index,
      callId: null,
      what: "media",
      reason: "bytes",
      beforeBytes: slot.sizeBytes,
      afterBytes: JSON.stringify(slot.placeholder).length,
      path: slot.path,
    });
  }
  const left = gone.toReversed().reduce<readonly unknown[]>((list, slot) => replaceMedia(list, slot), messages);
  return { messages: left, changes };
}
