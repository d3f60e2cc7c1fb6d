import { hasErrorCode } from "@throughline/core";
import { type Fields, parsedFields, type ReplyDraft } from "@throughline/core/internal";
import { collectAnthropic } from "./collect-anthropic.ts";
import { collectOllama } from "./collect-ollama.ts";
import { collectOpenAiChat } from "./collect-openai-chat.ts";
import { collectOpenAiResponses } from "./collect-openai-responses.ts";
import type { CollectedReply } from "./collected-reply.ts";
import { linesOf, readEvents } from "./read-events.ts";
import { apiReadings, type WireApi } from "./wire-api.ts";

/** A reply as the log keeps it. */
export interface ReadReply {
  /** Null where nothing came that a reply could be made of. */
  readonly draft: ReplyDraft | null;
  /** Whether the provider ended it; what was broken off is kept as aborted. */
  readonly isEnded: boolean;
  /** The provider's error inside of a stream, as it came. */
  readonly error: string | null;
  /** The events of the stream that are of no known type, as they came; empty for a whole reply. */
  readonly unknown: readonly string[];
}

/**
 * Reads a reply of a provider, whole or as a stream, also one that was broken off.
 *
 * @param contentType of the answer
 * @param text the body as far as it came
 * @param model the model that was asked for
 */
export function readReply(api: WireApi, contentType: string, text: string, model: string | undefined): ReadReply {
  const { reply, isEnded, error, unknown } = collect(api, contentType, text);
  const draft = reply === null ? null : draftOf(api, reply, model);
  if (draft === null || isEnded) return { draft, isEnded, error, unknown };
  const { content } = draft.message;
  const message = { ...draft.message, stopReason: "aborted" };
  return { draft: content.length === 0 ? null : { ...draft, message }, isEnded, error, unknown };
}

function collect(api: WireApi, contentType: string, text: string): CollectedReply {
  const isEvents = /^text\/event-stream/i.test(contentType);
  // A line that has no end yet may be the last one.
  if (api === "ollama" && !isEvents) return collectOllama([...linesOf(`${text}\n`)]);
  if (!isEvents) {
    const reply = parsedFields(text);
    return { reply, isEnded: reply !== null, error: null, unknown: [] };
  }
  const events = readEvents(text);
  switch (api) {
    case "anthropic-messages":
      return collectAnthropic(events);
    case "openai-completions":
      return collectOpenAiChat(events);
    case "openai-responses":
      return collectOpenAiResponses(events);
    case "ollama":
      return collectOllama(events.map(({ data }) => data));
  }
}

function draftOf(api: WireApi, reply: Fields, model: string | undefined): ReplyDraft | null {
  try {
    return apiReadings[api].recordFromReply(reply, model === undefined ? {} : { model });
  } catch (error) {
    if (!hasErrorCode(error, "INPUT_INVALID")) throw error;
    return null;
  }
}
