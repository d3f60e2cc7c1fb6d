import type { SessionRecord } from "@throughline/core";

type Fields = Readonly<Record<string, unknown>>;

const noTokens = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const noUsage: Fields = { ...noTokens, totalTokens: 0, cost: { ...noTokens, total: 0 } };

/** A record as pi's own reader needs it, and what was added to it. */
export interface PiRecord {
  readonly record: SessionRecord;
  /** Null when nothing was. */
  readonly added: string | null;
}

/**
 * Fits a message that pi did not write. pi 0.73 fails on a reply without usage. A result whose content is a text counts as an
 * image there.
 */
export function asPiRecord(record: SessionRecord): PiRecord {
  const message = record["message"];
  if (record.type !== "message" || typeof message !== "object" || message === null) return { record, added: null };
  const given = message as Fields;
  const { role, content, usage } = given;
  if (role !== "assistant" && role !== "toolResult") return { record, added: null };
  const isText = typeof content === "string";
  const needsUsage = role === "assistant" && (typeof usage !== "object" || usage === null);
  if (!isText && !needsUsage) return { record, added: null };
  const list = isText ? { content: content === "" ? [] : [{ type: "text", text: content }] } : {};
  const counted = needsUsage ? { usage: noUsage } : {};
  return {
    record: { ...record, message: { ...given, ...list, ...counted } },
    added: needsUsage ? "usage of a reply" : null,
  };
}
