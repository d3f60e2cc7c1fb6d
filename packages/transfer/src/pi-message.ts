import type { SessionRecord } from "@throughline/core";

type Fields = Readonly<Record<string, unknown>>;

const noTokens = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const noUsage: Fields = { ...noTokens, totalTokens: 0, cost: { ...noTokens, total: 0 } };

export interface PiRecord {
  readonly record: SessionRecord;
  /** Null when no field was added. */
  readonly added: string | null;
}

/**
 * Adapts a message that pi did not write. pi 0.73 fails on a reply without usage. It treats a result whose content is a
 * text as an image.
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
