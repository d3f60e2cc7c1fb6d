import { ThroughlineError, type ChatReply, type ChatRequest } from "@throughline/core";
import { maxReplyCharacters, type ReplyDraft, type ReplyEnd } from "./reply-draft.ts";

/** How one provider answers one request. */
export interface ReplySource<Event> {
  readonly request: ChatRequest;
  readonly draft: ReplyDraft;
  /** Asks, and gives what comes back: events as they arrive, or the whole answer as the only one. */
  readonly open: () => Promise<AsyncIterable<Event> | Iterable<Event>>;
  /** Adds an event to the draft. */
  readonly take: (event: Event) => void;
  /** The provider's word for how the answer ended, in the words of a record. */
  readonly endOf: (stopReason: string) => ReplyEnd;
  /** The SDK's error for a stream that ended before the answer did. */
  readonly brokenOff: () => Error;
}

/**
 * Asks and collects the answer. What had arrived when it broke off goes to `onPartial`; then the call fails with
 * ABORTED when the caller ended it, and with the SDK's own error otherwise.
 */
export async function collectReply<Event>(source: ReplySource<Event>): Promise<ChatReply> {
  const { request, draft, open, take } = source;
  let isTaking = false;
  try {
    assertNotAborted(request.signal);
    for await (const event of await open()) {
      isTaking = true;
      take(event);
      isTaking = false;
      // Leaving the loop ends the connection. A whole answer has no rest to be left.
      if (draft.isFull && draft.stopReason === null) return replyOf(draft, fullWord, fullEnd);
      // The rest of a pause between two events is not waited for.
      if (draft.stopReason === null) assertNotAborted(request.signal);
    }
    if (draft.stopReason !== null) return replyOf(draft, draft.stopReason, source.endOf);
    assertNotAborted(request.signal);
    throw source.brokenOff();
  } catch (error) {
    const isAborted = request.signal?.aborted === true;
    // The answer was complete: what a connection does behind its last word takes nothing from it.
    if (draft.stopReason !== null && !isTaking && !isAborted) return replyOf(draft, draft.stopReason, source.endOf);
    const message = error instanceof Error ? error.message : String(error);
    const partial = draft.partial({ stopReason: isAborted ? "aborted" : "error", errorMessage: message });
    if (partial !== null) request.onPartial?.(partial);
    throw isAborted ? aborted(request.signal) : error;
  }
}

const fullWord = "length";

/** An answer without end is one that reached a limit, and this one is ours. */
function fullEnd(): ReplyEnd {
  const errorMessage = `The answer did not end within ${maxReplyCharacters} characters, so it was stopped.`;
  return { stopReason: "length", errorMessage };
}

function replyOf(draft: ReplyDraft, word: string, endOf: (word: string) => ReplyEnd): ChatReply {
  draft.endCalls();
  const end = endOf(word);
  // Some servers say "stop" beside calls, and a call is to be answered whatever they say.
  const isCalling = end.stopReason === "stop" && draft.hasCalls;
  return {
    message: draft.message(isCalling ? { stopReason: "toolUse" } : end),
    stopReason: word,
    usage: draft.usage,
  };
}

/** @throws {ThroughlineError} ABORTED */
export function assertNotAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw aborted(signal);
}

function aborted(signal: AbortSignal | undefined): ThroughlineError {
  return new ThroughlineError("ABORTED", "The call of the model was aborted.", { cause: signal?.reason });
}
