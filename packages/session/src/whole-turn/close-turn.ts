import type { AssistantMessage } from "@throughline/core";
import { tellListener } from "@throughline/core/internal";
import { endFlush, isSilentReply, observeFlush, readFlushState } from "@throughline/compaction/internal";
import type { BeforeClose } from "../session-options.ts";
import { textOfContent } from "../window-facts.ts";
import { reminderDraft } from "./flush-step.ts";
import type { WholeTurnParts } from "./whole-turn-parts.ts";

/**
 * Counts the user messages and records the outcome of a flush in the append that ends a turn. An answer to the flush
 * alone leaves the user's question open, so the model is asked again once.
 */
export function closeTurn(parts: WholeTurnParts): BeforeClose {
  const { memory, checkpointer, clock, listener, flush } = parts;
  return ({ ref, turnId, outcome, reply, entry }) => {
    const note = memory.turn(ref, turnId);
    if (outcome === "done" && note.wasAsked && !note.hasReminded && isSilent(reply)) {
      note.hasReminded = true;
      tellListener(listener, { name: "flush.silent", ref, turnId });
      return { askAgain: [reminderDraft(clock.nowMs())] };
    }
    const counted = note.userMessages === 0 ? {} : checkpointer.turnPatch(entry, note.userMessages);
    const patch = { ...note.patch, ...counted };
    if (!note.wasAsked || flush === null) return { entry: patch };
    const now = { ...entry, ...patch };
    const calls = [...note.calls.values()];
    const ended = endFlush(now, { calls, failed: false }, flush);
    // A compaction after the question began a new cycle. The agent's reaction is recorded all the same.
    const observation = ended?.observation ?? observeFlush(calls, flush);
    tellListener(listener, { name: "flush.ended", ref, turnId, ...observation });
    return { entry: { ...patch, ...(ended?.patch ?? { memoryFlush: { ...readFlushState(now), ...observation } }) } };
  };
}

function isSilent(reply: AssistantMessage | null): boolean {
  return reply !== null && isSilentReply(textOfContent(reply.content));
}
