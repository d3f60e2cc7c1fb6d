import { isFields, type Fields } from "@throughline/core/internal";
import type { ForeignFormat, FormatMatch } from "../foreign-format.ts";
import { createListReader } from "../message-list.ts";
import { firstConversation, matchOfMessages, messageLayout } from "../message-samples.ts";
import { UiMessages } from "./ui-messages.ts";
import { uiMessageWriter } from "./write-ui-messages.ts";

const lists = [[], ["messages"]];

/**
 * The format covers messages of the AI SDK's `useChat` as programs store them: a list, or a chat with its id. Messages
 * of version 4 are included.
 */
export const aiSdkFormat: ForeignFormat = {
  name: "ai-sdk",
  program: "Vercel AI SDK",
  layout: (sample) => messageLayout(sample, lists),
  places: [],
  detect: (sample) => {
    const document = firstConversation(sample, lists);
    if (document === null) return null;
    // A list without one certain message could equally be OpenAI's format, so it is not detected.
    return matchOfMessages(document.elements, matchOf) === "certain" ? "certain" : null;
  },
  canRead: (sample) => {
    const document = firstConversation(sample, lists);
    return document !== null && matchOfMessages(document.elements, matchOf) !== null;
  },
  createReader: (options) => createListReader(new UiMessages(), options),
  writer: uiMessageWriter,
};

const roles: ReadonlySet<unknown> = new Set(["system", "user", "assistant", "data"]);

function matchOf({ id, role, parts, content, createdAt, toolInvocations }: Fields): FormatMatch | null {
  if (!roles.has(role) || typeof id !== "string") return null;
  if (Array.isArray(parts)) {
    const areParts = (parts as readonly unknown[]).every((part) => isFields(part) && typeof part["type"] === "string");
    return areParts ? "certain" : null;
  }
  if (typeof content !== "string") return null;
  return Array.isArray(toolInvocations) || createdAt !== undefined ? "certain" : "likely";
}
