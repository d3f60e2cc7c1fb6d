import { definedFields, readJsonObject } from "./database-session.ts";
import type { DatabaseRow } from "./node/foreign-database.ts";

/** Gives each row of GoClaw's messages the record it stands for, in the order they were written. */
export interface MessageRows {
  record(row: DatabaseRow): Readonly<Record<string, unknown>>;
}

/** Columns that have no place in a record; they are kept beside it. */
const otherColumns = [
  "source",
  "channel_id",
  "user_id",
  "supervisor",
  "intervention_type",
  "raw_json",
  "transcript_indexed_at",
];

/**
 * GoClaw keeps a reply as rows: its text, then each call of a tool, then each result. Rows without a call's id, as the
 * documents describe them, are paired by tool and order.
 */
export function createMessageRows(): MessageRows {
  let isReply = false;
  const unanswered: { readonly id: string; readonly name: string }[] = [];
  const takeCall = (name: string): string | null => {
    const found = unanswered.findIndex((call) => call.name === name);
    return unanswered.splice(found < 0 ? 0 : found, 1)[0]?.id ?? null;
  };
  const messageOf = (row: DatabaseRow, role: string): Readonly<Record<string, unknown>> => {
    const text = textOf(row["content"]);
    switch (role) {
      case "assistant":
        return { role, content: [...thinkingOf(row), ...textBlocks(text)], ...usageOf(row) };
      case "tool_use": {
        const id = textOf(row["tool_call_id"]) || String(row["id"]);
        const name = textOf(row["tool_name"]);
        unanswered.push({ id, name });
        const call = { type: "toolCall", id, name, ...argumentsOf(row["tool_input"]) };
        const fragment = isReply ? { fragment: true } : {};
        return { role: "assistant", content: [...textBlocks(text), call], ...fragment, ...usageOf(row) };
      }
      case "tool_result": {
        const toolName = textOf(row["tool_name"]);
        const stated = textOf(row["tool_call_id"]);
        const paired = takeCall(toolName);
        const result = textOf(row["tool_result"]) || text;
        const isError = Number(row["tool_is_error"] ?? 0) !== 0;
        const toolCallId = stated || paired || String(row["id"]);
        return { role: "toolResult", toolCallId, toolName, content: textBlocks(result), isError };
      }
      default:
        return { role: "user", content: textBlocks(text) };
    }
  };
  return {
    record(row) {
      const role = textOf(row["role"]);
      const timestampMs = timeMs(row["timestamp"]);
      const base = { id: String(row["id"]), timestamp: isoTime(timestampMs) };
      const beside = definedFields(Object.fromEntries(otherColumns.map((name) => [name, row[name]])));
      const goclaw = Object.keys(beside).length === 0 ? {} : { goclaw: beside };
      if (role === "system") {
        const content = textOf(row["content"]);
        return { ...base, type: "custom_message", customType: "goclaw.system", content, display: true, ...goclaw };
      }
      const message = messageOf(row, role);
      isReply = role === "assistant" || role === "tool_use";
      const time = timestampMs === null ? {} : { timestamp: timestampMs };
      return { ...base, type: "message", message: { ...message, ...time }, ...goclaw };
    },
  };
}

export function checkpointRecord(row: DatabaseRow): Readonly<Record<string, unknown>> {
  return {
    type: "checkpoint",
    id: String(row["id"]),
    timestamp: isoTime(timeMs(row["timestamp"])),
    checkpoint: definedFields({
      summary: textOf(row["summary"]),
      tokensAtCheckpoint: Number(row["tokens_at_checkpoint"] ?? 0),
      messageCountAtCheckpoint: Number(row["message_count_at_checkpoint"] ?? 0),
      topics: listOf(row["topics"]),
      keyDecisions: listOf(row["key_decisions"]),
      openQuestions: listOf(row["open_questions"]),
      coversToId: row["covers_up_to"],
      generatedBy: row["generated_by"],
    }),
  };
}

export function compactionRecord(row: DatabaseRow): Readonly<Record<string, unknown>> {
  return definedFields({
    type: "compaction",
    id: String(row["id"]),
    timestamp: isoTime(timeMs(row["timestamp"])),
    summary: textOf(row["summary"]),
    firstKeptEntryId: textOf(row["first_kept_entry_id"]),
    tokensBefore: Number(row["tokens_before"] ?? 0),
    tokensAfter: row["tokens_after"],
    fromCheckpoint: row["checkpoint_id"],
    goclaw: definedFields({
      messages_removed: row["messages_removed"],
      from_checkpoint: row["from_checkpoint"],
      needs_summary_retry: row["needs_summary_retry"],
    }),
  });
}

/** Seconds, milliseconds or text, as UTC milliseconds; null when it is no time. */
export function timeMs(value: unknown): number | null {
  if (typeof value === "number" && Number.isFinite(value)) return value < 1e11 ? Math.round(value * 1000) : value;
  if (typeof value !== "string" || value === "") return null;
  // SQLite's own text form has no zone and means UTC.
  const text = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?$/.test(value) ? `${value.replace(" ", "T")}Z` : value;
  const ms = Date.parse(text);
  return Number.isFinite(ms) ? ms : null;
}

export function isoTime(ms: number | null): string {
  return new Date(ms ?? 0).toISOString();
}

function argumentsOf(value: unknown): Readonly<Record<string, unknown>> {
  const text = value instanceof Uint8Array ? Buffer.from(value).toString("utf8") : value;
  if (text === null || text === undefined || text === "") return { arguments: {} };
  const read = readJsonObject(text);
  return read === null ? { arguments: {}, partialJson: String(text) } : { arguments: read };
}

function usageOf(row: DatabaseRow): Readonly<Record<string, unknown>> {
  const input = Number(row["input_tokens"] ?? 0);
  const output = Number(row["output_tokens"] ?? 0);
  return input > 0 || output > 0 ? { usage: { input, output, cacheRead: 0, cacheWrite: 0 } } : {};
}

function thinkingOf(row: DatabaseRow): readonly unknown[] {
  const thinking = textOf(row["thinking"]);
  return thinking === "" ? [] : [{ type: "thinking", thinking }];
}

function textBlocks(text: string): readonly unknown[] {
  return text === "" ? [] : [{ type: "text", text }];
}

function listOf(value: unknown): readonly unknown[] | null {
  if (typeof value !== "string") return null;
  try {
    const list: unknown = JSON.parse(value);
    return Array.isArray(list) ? list : null;
  } catch {
    return null;
  }
}

function textOf(value: unknown): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString("utf8");
  return typeof value === "string" ? value : value === null || value === undefined ? "" : String(value);
}
