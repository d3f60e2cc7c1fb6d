import type {
  AssistantMessage,
  OpenTurn,
  PartialReply,
  RecordDraft,
  SessionRef,
  SessionStore,
} from "@throughline/core";
import { isLostPartial } from "@throughline/core/internal";
import { isReply } from "./message-parts.ts";
import type { Emit } from "./session-event.ts";
import { textOfContent } from "./window-facts.ts";

/**
 * Reads what was shown of the reply of the open turn.
 *
 * @throws what the store throws. A partial that cannot be read becomes an event, because it must not block the session
 */
export async function readPartial(
  { partials }: SessionStore,
  ref: SessionRef,
  emit: Emit | null,
): Promise<PartialReply | null> {
  try {
    return (await partials?.read(ref)) ?? null;
  } catch (cause) {
    if (!isLostPartial(cause)) throw cause;
    emit?.({ name: "step.failed", step: "read-partial", cause });
    return null;
  }
}

/**
 * Creates the record of the reply that a dead turn was writing, from what was shown of it. The store gives the partial
 * only until the turn is closed, so call this before. Returns null when nothing was shown, and when the log has the
 * reply.
 */
export async function recoverReply(
  store: SessionStore,
  ref: SessionRef,
  { turnId, fence }: OpenTurn,
  emit: Emit | null,
): Promise<RecordDraft | null> {
  const partial = await readPartial(store, ref, emit);
  if (partial === null || partial.turnId !== turnId || partial.fence !== fence) return null;
  const { text, afterSeq, provider, model } = partial;
  if (text.trim() === "" || (await hasReplyAfter(store, ref, afterSeq))) return null;
  const message: AssistantMessage = {
    role: "assistant",
    content: [{ type: "text", text }],
    ...(provider === null ? {} : { provider }),
    ...(model === null ? {} : { model }),
    stopReason: "aborted",
    recovered: true,
  };
  return { type: "message", message };
}

/** Returns whether the log has a reply with a greater seq, such as the one that a partial is the beginning of. */
export async function hasReplyAfter(store: SessionStore, ref: SessionRef, afterSeq: number): Promise<boolean> {
  for await (const { records } of store.read(ref, { afterSeq })) if (records.some(isReply)) return true;
  return false;
}

/** Counts the characters of a recovered reply. */
export function recoveredCharacters(draft: RecordDraft): number {
  return textOfContent((draft["message"] as AssistantMessage).content).length;
}
