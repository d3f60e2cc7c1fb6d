import { isFields, type Fields } from "@throughline/core/internal";
import { asText, shownText } from "../as-text.ts";
import type { Usage } from "@throughline/core";
import { recordFromReply, recordsFromMessages } from "@throughline/history/anthropic";
import { attempt, callsOf, plainMessage } from "../mapped-messages.ts";
import type { RecordBody } from "../unit-records.ts";

export interface ReadReply {
  /**
   * @param isFurtherPart whether an earlier line began the reply; that line holds the usage, because every line repeats
   * it
   */
  messageOf(isFurtherPart: boolean): Fields;
  readonly outputTokens: number;
  /**
   * Every line repeats the usage, so only output tokens beyond those of earlier lines count. Null means that there are
   * none.
   */
  usageBeyond(outputTokens: number | null): Usage | null;
  readonly identity: { readonly provider?: string; readonly model?: string };
  readonly calls: readonly { readonly id: string; readonly name: string }[];
}

/** Claude Code writes this name when it created the message without a model, so it must not count as a model. */
const noModel = "<synthetic>";

/** Null means that the message has no form that a reply can have. */
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
  /** The program's form of a result holds more than the model got. */
  readonly details: unknown;
  readonly nameOf: (callId: string) => string | null;
}

/**
 * Each result becomes a record of its own, in the order of the line. Null means that the content has no form of a
 * message.
 */
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

export function answeredIds(content: unknown): readonly string[] {
  if (!Array.isArray(content)) return [];
  return (content as readonly unknown[]).flatMap((block) => {
    const id = isFields(block) && block["type"] === "tool_result" ? block["tool_use_id"] : null;
    return typeof id === "string" ? [id] : [];
  });
}

/** An image and a file have no text. */
function blockText(block: unknown): string {
  if (!isFields(block)) return shownText(block);
  return "source" in block ? "" : shownText(block["text"] ?? block);
}

export function textOf(content: unknown): string {
  if (!Array.isArray(content)) return shownText(content);
  return (content as readonly unknown[])
    .map(blockText)
    .filter((text) => text !== "")
    .join("\n");
}

/** For several results in one line, the program keeps a list or states details of the first result only. */
function detailsOf(details: unknown, at: number, count: number): unknown {
  if (count > 1 && Array.isArray(details) && details.length === count) return (details as readonly unknown[])[at];
  return at === 0 ? details : undefined;
}
