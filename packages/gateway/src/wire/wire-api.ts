import { hasErrorCode } from "@throughline/core";
import type { MessageDraft, ReplyDraft } from "@throughline/core/internal";
import type { RecordFromReplyOptions, RecordsFromMessagesOptions } from "@throughline/history/internal";
import * as anthropic from "@throughline/history/anthropic";
import * as ollama from "@throughline/history/ollama";
import * as openai from "@throughline/history/openai";

/** Names a supported provider API, as records name it. */
export type WireApi = "anthropic-messages" | "openai-completions" | "openai-responses" | "ollama";

export interface ApiReading {
  readonly list: "messages" | "input";
  /** Names the member that may hold one user message as a text. */
  readonly plainText: "input" | "prompt" | null;
  /** Lists the roles of leading messages that form the system prompt. */
  readonly systemRoles: ReadonlySet<unknown>;
  /** Is true when the API has no call ids that last across requests, so that ids must not count in hashes. */
  readonly isWithoutIds: boolean;
  recordsFromMessages(messages: readonly unknown[], options: RecordsFromMessagesOptions): readonly MessageDraft[];
  recordFromReply(reply: unknown, options: RecordFromReplyOptions): ReplyDraft;
}

const system = new Set<unknown>(["system", "developer"]);

/**
 * Maps each API to its reader. The readers are those of the history package, so that all packages parse messages alike.
 */
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

/** Returns whether the model wrote the values. Unreadable values are not a reply. */
export function isReply(api: WireApi, values: readonly unknown[]): boolean {
  try {
    return apiReadings[api].recordsFromMessages(values, {}).some(({ message }) => message.role === "assistant");
  } catch (error) {
    if (!hasErrorCode(error, "INPUT_INVALID")) throw error;
    return false;
  }
}
