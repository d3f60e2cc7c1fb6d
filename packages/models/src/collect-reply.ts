import { causeText } from "@throughline/core/internal";
import { ThroughlineError, type ChatReply, type ChatRequest } from "@throughline/core";
import { maxReplyCharacters, type ReplyDraft, type ReplyEnd } from "./reply-draft.ts";

export interface ReplySource<Event> {
  readonly request: ChatRequest;
  readonly draft: ReplyDraft;
  /** Sends the request and returns the events as they arrive, or the whole answer as the only event. */
  readonly open: () => Promise<AsyncIterable<Event> | Iterable<Event>>;
  readonly take: (event: Event) => void;
  readonly endOf: (stopReason: string) => ReplyEnd;
  readonly brokenOff: () => Error;
}

/**
 * Sends the request and collects the answer. If the answer breaks off, `onPartial` receives the part that had arrived.
 * The call then fails with ABORTED if the caller aborted it, and with the SDK's own error otherwise.
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
      // Leaving the loop closes the connection. A whole answer has a stop reason and nothing left to read.
      if (draft.isFull && draft.stopReason === null) return replyOf(draft, fullWord, fullEnd);
      // After an abort the loop must not wait for the pause between two events to end.
      if (draft.stopReason === null) assertNotAborted(request.signal);
    }
    if (draft.stopReason !== null) return replyOf(draft, draft.stopReason, source.endOf);
    assertNotAborted(request.signal);
    throw source.brokenOff();
  } catch (error) {
    const isAborted = request.signal?.aborted === true;
    // The answer is complete, so a connection error after its last event does not invalidate it.
    if (draft.stopReason !== null && !isTaking && !isAborted) return replyOf(draft, draft.stopReason, source.endOf);
    const message = causeText(error);
    const partial = draft.partial({ stopReason: isAborted ? "aborted" : "error", errorMessage: message });
    if (partial !== null) request.onPartial?.(partial);
    throw isAborted ? aborted(request.signal) : error;
  }
}

const fullWord = "length";

/** An endless answer ends like an answer at a token limit, but the limit is this package's. */
function fullEnd(): ReplyEnd {
  const errorMessage = `The answer did not end within ${maxReplyCharacters} characters, so it was stopped.`;
  return { stopReason: "length", errorMessage };
}

function replyOf(draft: ReplyDraft, word: string, endOf: (word: string) => ReplyEnd): ChatReply {
  draft.endCalls();
  const end = endOf(word);
  // Some servers report "stop" although the answer has calls. Calls need results, so the record states `toolUse`.
  const isCalling = end.stopReason === "stop" && draft.hasCalls;
  return {
    message: draft.message(isCalling ? { stopReason: "toolUse" } : end),
    stopReason: word,
    usage: draft.usage,
  };
}

/** Throws if the signal is aborted. @throws {ThroughlineError} ABORTED */
export function assertNotAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw aborted(signal);
}

function aborted(signal: AbortSignal | undefined): ThroughlineError {
  return new ThroughlineError("ABORTED", "The call of the model was aborted.", { cause: signal?.reason });
}
