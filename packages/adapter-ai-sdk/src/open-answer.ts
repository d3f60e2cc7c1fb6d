import { hasErrorCode, type PartialReply, type SessionRef, type SessionStore } from "@throughline/core";
import { type Fields, isUnreadablePartial, messageRole } from "@throughline/core/internal";
import type { LogView } from "@throughline/foreign-formats/internal";
import { streamTurnOf } from "./active-streams.ts";

/** Reads the text that a stream keeps; null for one that cannot be read. Read it before the log, so that it is never newer than the records. */
export async function readOpenText({ partials }: SessionStore, ref: SessionRef): Promise<PartialReply | null> {
  try {
    return (await partials?.read(ref)) ?? null;
  } catch (error) {
    if (hasErrorCode(error, "SESSION_NOT_FOUND") || isUnreadablePartial(error)) return null;
    throw error;
  }
}

/**
 * Returns the message that a stream writes, as far as the store has it: the stored parts and the text of the next one.
 * It is null before anything of it is stored.
 */
export function openAnswer(
  { state, records }: LogView,
  messages: readonly Fields[],
  partial: PartialReply | null,
): Fields | null {
  const id = state?.entry["activeStreamMessage"];
  const turn = streamTurnOf(state);
  if (typeof id !== "string" || turn === null) return null;
  const stored = messages.findLast((message) => message["id"] === id) ?? null;
  // A reply that was stored after the text holds that text.
  const isStale = (afterSeq: number): boolean =>
    records.some(({ seq, side, record }) => seq > afterSeq && !side && messageRole(record) === "assistant");
  if (partial === null || partial.turnId !== turn.turnId || isStale(partial.afterSeq)) return stored;
  const parts = Array.isArray(stored?.["parts"]) ? (stored["parts"] as readonly unknown[]) : [];
  const steps = Array.from({ length: partial.step - 1 - parts.length }, () => ({ type: "step-start" }));
  const text = { type: "text", text: partial.text, state: "streaming" };
  return { ...(stored ?? { id, role: "assistant" }), parts: [...parts, ...steps, text] };
}
