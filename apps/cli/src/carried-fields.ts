import type { SessionEntry } from "@throughline/core";

/**
 * What a session's successor keeps when it is reset: how people set it up and where its replies go, not what belonged
 * to the conversation (tokens, compactions, the ids other programs keep for it).
 */
const carried: readonly string[] = [
  "label",
  "displayName",
  "chatType",
  "origin",
  "channel",
  "lastChannel",
  "lastTo",
  "lastAccountId",
  "lastThreadId",
  "deliveryContext",
  "sendPolicy",
  "model",
  "modelProvider",
  "modelOverride",
  "providerOverride",
  "contextTokens",
  "thinkingLevel",
  "verboseLevel",
  "reasoningLevel",
  "elevatedLevel",
  "fastMode",
  "groupActivation",
  "queueMode",
  "responseUsage",
  "ttsAuto",
];

/** The fields of an entry that outlive a reset. */
export function carriedFields(entry: SessionEntry): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(entry).filter(([field]) => carried.includes(field)));
}
