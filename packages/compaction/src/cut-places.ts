import type { Steps } from "@throughline/core/internal";
import type { NeutralMessage } from "@throughline/history/internal";

/**
 * Rates a cut before a message. `clean`: no call is separated from its result. `turn`: the message is from the user,
 * and a call before it has its result only after it. Histories omit such a result or show it as text, so that cut is
 * valid too. It is used only when no clean place exists.
 */
export type CutPlace = "clean" | "turn" | null;

export function* cutPlaces(messages: readonly NeutralMessage[]): Steps<readonly CutPlace[]> {
  const parted = yield* partedPlaces(messages);
  const places: CutPlace[] = [];
  for (const [index, message] of messages.entries()) {
    yield;
    const isUser = message.role === "user";
    if (!isBeginning(message, messages[index - 1])) places.push(null);
    else places.push(parted[index] === 0 ? "clean" : isUser ? "turn" : null);
  }
  return places;
}

function isBeginning(message: NeutralMessage, before: NeutralMessage | undefined): boolean {
  if (message.role === "user") return true;
  if (message.role !== "assistant" || message.isFragment) return false;
  // One reply can be stored in several records. It must stay whole.
  const isSameReply = before?.role === "assistant" && before.responseId !== null;
  return !(isSameReply && before.responseId === message.responseId);
}

/** Counts for each index how many calls before it have their result at or after it. */
function* partedPlaces(messages: readonly NeutralMessage[]): Steps<readonly number[]> {
  const changes = Array.from<number>({ length: messages.length + 1 }).fill(0);
  const open = new Map<string, number[]>();
  for (const [index, message] of messages.entries()) {
    yield;
    if (message.role === "assistant") {
      for (const block of message.content) {
        if (block.type !== "toolCall") continue;
        const sites = open.get(block.id);
        if (sites === undefined) open.set(block.id, [index]);
        else sites.push(index);
      }
    }
    if (message.role !== "toolResult") continue;
    // Providers reuse ids, so a result belongs to the nearest call without a result.
    const site = open.get(message.toolCallId)?.pop();
    if (site === undefined) continue;
    changes[site + 1] = (changes[site + 1] ?? 0) + 1;
    changes[index + 1] = (changes[index + 1] ?? 0) - 1;
  }
  let parted = 0;
  return messages.map((_, index) => (parted += changes[index] ?? 0));
}
