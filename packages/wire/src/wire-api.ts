import { hasErrorCode } from "@throughline/core";
import { type MessageDraft, type ReplyDraft } from "@throughline/core/internal";
import type { RecordFromReplyOptions, RecordsFromMessagesOptions } from "@throughline/history/internal";
import * as anthropic from "@throughline/history/anthropic";
import * as ollama from "@throughline/history/ollama";
import * as openai from "@throughline/history/openai";

/** A provider's API whose calls are understood, by the name that records have for it. */
export type WireApi = "anthropic-messages" | "openai-completions" | "openai-responses" | "ollama";

/** How requests of an API are read. */
export interface ApiReading {
  /** The member that holds the messages. */
  readonly list: "messages" | "input";
  /** Where a text may stand for one message of the user. */
  readonly plainText: "input" | "prompt" | null;
  /** Roles whose messages at the beginning are the system prompt. */
  readonly systemRoles: ReadonlySet<unknown>;
  /** Calls have no ids that last. */
  readonly isWithoutIds: boolean;
  recordsFromMessages(messages: readonly unknown[], options: RecordsFromMessagesOptions): readonly MessageDraft[];
  recordFromReply(reply: unknown, options: RecordFromReplyOptions): ReplyDraft;
}

const system = new Set<unknown>(["system", "developer"]);

/** Each API, read by the package that reads messages everywhere else. */
export const apiReadings: Readonly<Record<WireApi, ApiReading>> = {
  "anthropic-messages": {
    list: "messages",
    plainText: null,
    systemRoles: new Set(),
    isWithoutIds: false,
    recordsFromMessages: anthropic.recordsFromMessages,
    recordFromReply: anthropic.recordFromReply,
  },
  "openai-completions": {
    list: "messages",
    plainText: null,
    systemRoles: system,
    isWithoutIds: false,
    recordsFromMessages: openai.recordsFromMessages,
    recordFromReply: openai.recordFromReply,
  },
  "openai-responses": {
    list: "input",
    plainText: "input",
    systemRoles: system,
    isWithoutIds: false,
    recordsFromMessages: openai.recordsFromMessages,
    recordFromReply: openai.recordFromReply,
  },
  ollama: {
    list: "messages",
    plainText: "prompt",
    systemRoles: system,
    isWithoutIds: true,
    recordsFromMessages: ollama.recordsFromMessages,
    recordFromReply: ollama.recordFromReply,
  },
};

/** Whether the model wrote them. What cannot be read is no reply. */
export function isReply(api: WireApi, values: readonly unknown[]): boolean {
  try {
    return apiReadings[api].recordsFromMessages(values, {}).some(({ message }) => message.role === "assistant");
  } catch (error) {
    if (!hasErrorCode(error, "INPUT_INVALID")) throw error;
    return false;
  }
}
