import { isFields, type Fields } from "@throughline/core/internal";
import { asText } from "../as-text.ts";
import type { Usage } from "@throughline/core";
import { recordFromReply, recordsFromMessages } from "@throughline/history/anthropic";
import { attempt, callsOf, plainMessage } from "../mapped-messages.ts";
import type { RecordBody } from "../unit-records.ts";

/** A reply's line, read. */
export interface ReadReply {
  /** @param isFurtherPart whether an earlier line began the reply: that one has the usage, which every line repeats */
  messageOf(isFurtherPart: boolean): Fields;
  readonly outputTokens: number;
  /** What this line states beyond the output tokens of the lines before it; null for nothing. */
  usageBeyond(outputTokens: number | null): Usage | null;
  readonly identity: { readonly provider?: string; readonly model?: string };
  readonly calls: readonly { readonly id: string; readonly name: string }[];
}

/** The model that Claude Code names where none was asked. */
const noModel = "<synthetic>";

/** Reads the message of an assistant line; null when it is in no form that a reply can have. */
export function replyMessage(message: unknown, { isError }: { readonly isError: boolean }): ReadReply | null {
  if (!isFields(message)) return null;
  const { content } = message;
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const isStated = typeof message["stop_reason"] === "string";
  const model = message["model"] === noModel ? undefined : message["model"];
  const read = attempt(() => recordFromReply({ ...message, model, content: blocks }).message);
  if (read === null) return null;
  const { stopReason, usage, ...fields } = plainMessage(read) as Fields & { readonly usage?: Usage };
  const { provider, model: named, ...bare } = fields;
  const identity = typeof named === "string" ? { provider: asText(provider), model: named } : {};
  const ended = isError
    ? { stopReason: "error", errorMessage: textOf(content) }
    : isStated || stopReason === "toolUse"
      ? { stopReason }
      : {};
  const counted = usage === undefined ? {} : { usage };
  return {
    messageOf: (isFurtherPart) => ({
      ...bare,
      ...identity,
      ...(isFurtherPart ? { fragment: true } : counted),
      ...ended,
    }),
    outputTokens: usage?.output ?? 0,
    usageBeyond: (before) => {
      const output = (usage?.output ?? 0) - (before ?? Infinity);
      return output > 0 ? { input: 0, output, cacheRead: 0, cacheWrite: 0, totalTokens: output } : null;
    },
    identity,
    calls: callsOf(fields["content"]),
  };
}

interface UserLineContext {
  /** The program's own form of a result, with more in it than the model saw. */
  readonly details: unknown;
  readonly nameOf: (callId: string) => string | null;
}

/** What a user line says, in the order it says it: one record for each result; null when it is in no form of a message. */
export function userMessages(content: unknown, { details, nameOf }: UserLineContext): readonly RecordBody[] | null {
  const drafts = attempt(() => recordsFromMessages([{ role: "user", content }]));
  if (drafts === null) return null;
  const resultCount = drafts.filter(({ message }) => message.role === "toolResult").length;
  let at = 0;
  return drafts.map(({ type, message }) => {
    if (message.role !== "toolResult") return { type, message };
    const name = nameOf(asText(message["toolCallId"]));
    const own = detailsOf(details, at++, resultCount);
    return {
      type,
      message: {
        ...message,
        ...(name === null ? {} : { toolName: name }),
        ...(own === undefined ? {} : { details: own }),
      },
    };
  });
}

/** The calls that a user line answers. */
export function answeredIds(content: unknown): readonly string[] {
  if (!Array.isArray(content)) return [];
  return (content as readonly unknown[]).flatMap((block) => {
    const id = isFields(block) && block["type"] === "tool_result" ? block["tool_use_id"] : null;
    return typeof id === "string" ? [id] : [];
  });
}

/** The texts of a message's content. */
export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  const texts = (content as readonly unknown[]).map((block) => (isFields(block) ? block["text"] : null));
  return texts.filter((text) => typeof text === "string").join("\n");
}

/** Of several results in one line the program keeps a list, or says of the first alone. */
function detailsOf(details: unknown, at: number, count: number): unknown {
  if (count > 1 && Array.isArray(details) && details.length === count) return (details as readonly unknown[])[at];
  return at === 0 ? details : undefined;
}
