import type { AssistantMessage } from "@throughline/core";
import { tellListener } from "@throughline/core/internal";
import { endFlush, isSilentReply, observeFlush, readFlushState } from "@throughline/compaction/internal";
import type { BeforeClose } from "../session-options.ts";
import { textOfContent } from "../window-facts.ts";
import { reminderDraft } from "./flush-step.ts";
import type { WholeTurnParts } from "./whole-turn-parts.ts";

/**
 * With the append that ends a turn its user messages are counted and what the agent did with a flush is noted. An answer
 * that was for the flush alone leaves the user's question open: it is put again, once.
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
    // A compaction between the question and here has begun a new cycle; what the agent did is still worth knowing.
    const observation = ended?.observation ?? observeFlush(calls, flush);
    tellListener(listener, { name: "flush.ended", ref, turnId, ...observation });
    return { entry: { ...patch, ...(ended?.patch ?? { memoryFlush: { ...readFlushState(now), ...observation } }) } };
  };
}

function isSilent(reply: AssistantMessage | null): boolean {
  return reply !== null && isSilentReply(textOfContent(reply.content));
}
