import { hasErrorCode } from "@throughline/core";
import { type Fields, parsedFields, type ReplyDraft } from "@throughline/core/internal";
import { collectAnthropic } from "./collect-anthropic.ts";
import { collectOllama } from "./collect-ollama.ts";
import { collectOpenAiChat } from "./collect-openai-chat.ts";
import { collectOpenAiResponses } from "./collect-openai-responses.ts";
import type { CollectedReply } from "./collected-reply.ts";
import { linesOf, readEvents } from "./read-events.ts";
import { apiReadings, type WireApi } from "./wire-api.ts";

/** Holds a reply in the form that the log stores. */
export interface ReadReply {
  /** Holds the draft of the reply. Null when the answer contains none. */
  readonly draft: ReplyDraft | null;
  /** States whether the provider ended the reply. An incomplete reply is stored as aborted. */
  readonly isEnded: boolean;
  /** Holds the provider's error inside a stream, unchanged. Null when there is none. */
  readonly error: string | null;
  /** Lists events of unknown types, unchanged; empty for an answer that is not a stream. */
  readonly unknown: readonly string[];
}

/**
 * Parses the reply of a provider, streamed or not. An incomplete reply is accepted.
 *
 * @param contentType the content type of the answer
 * @param text the body as far as it arrived
 * @param model the model that was requested
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
  // The line feed completes the last line, which may be the final event.
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
