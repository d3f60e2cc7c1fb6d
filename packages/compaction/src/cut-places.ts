import type { Steps } from "@throughline/core/internal";
import type { NeutralMessage } from "@throughline/history/internal";

/**
 * Where a conversation may be cut, by the index of the first message that stays. `clean`: no call is separated from its
 * result. `turn`: before a user message, with a call whose result comes only after it. Histories leave such a result
 * out or show it as text, so the cut is valid. It is used if there is no other.
 */
export type CutPlace = "clean" | "turn" | null;

/** For each message whether the conversation may be cut before it. */
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
  // A reply that was stored in several records stays whole.
  const isSameReply = before?.role === "assistant" && before.responseId !== null;
  return !(isSameReply && before.responseId === message.responseId);
}

/** For each index, how many calls before it have their result at it or after it. */
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
    // Providers use ids again: a result belongs to the nearest call that has none.
    const site = open.get(message.toolCallId)?.pop();
    if (site === undefined) continue;
    changes[site + 1] = (changes[site + 1] ?? 0) + 1;
    changes[index + 1] = (changes[index + 1] ?? 0) - 1;
  }
  let parted = 0;
  return messages.map((_, index) => (parted += changes[index] ?? 0));
}
