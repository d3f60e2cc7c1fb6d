import { definedFields, readJsonObject } from "./database-session.ts";
import type { DatabaseRow } from "./node/foreign-database.ts";

/** Converts rows of GoClaw's messages to records, in the order they were written. */
export interface MessageRows {
  /** `atMs` is the row's time; a row without a time gets that of the row before it. */
  record(row: DatabaseRow, atMs: number): Readonly<Record<string, unknown>>;
}

/** Every other role is read as a user message, and the record keeps the original role. */
export const knownRoles: readonly string[] = ["user", "assistant", "tool_use", "tool_result", "system"];

/** These columns hold JSON lists. Text that is no list is kept beside the record. */
export const listColumns = {
  topics: "topics",
  key_decisions: "keyDecisions",
  open_questions: "openQuestions",
} as const;

/** A record has no fields for these columns, so `goclaw` keeps them. */
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
 * GoClaw stores a reply as rows: the text, then each tool call, then each result. Its documents describe rows without a
 * call id; such calls and results are paired by tool and order.
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
    record(row, atMs) {
      const role = textOf(row["role"]);
      const timestampMs = timeMs(row["timestamp"]);
      const base = { id: rowId(row), timestamp: isoTime(atMs) };
      const beside = definedFields({
        ...Object.fromEntries(otherColumns.map((name) => [name, row[name]])),
        ...(knownRoles.includes(role) ? {} : { role: row["role"] }),
        ...(timestampMs === null ? { timestamp: row["timestamp"] } : {}),
      });
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

export function checkpointRecord(row: DatabaseRow, atMs: number): Readonly<Record<string, unknown>> {
  const columns = Object.entries(listColumns);
  const beside = definedFields(
    Object.fromEntries(columns.map(([column]) => [column, isBrokenList(row[column]) ? textOf(row[column]) : null])),
  );
  return {
    type: "checkpoint",
    id: rowId(row),
    timestamp: isoTime(atMs),
    checkpoint: definedFields({
      summary: textOf(row["summary"]),
      tokensAtCheckpoint: Number(row["tokens_at_checkpoint"] ?? 0),
      messageCountAtCheckpoint: Number(row["message_count_at_checkpoint"] ?? 0),
      ...Object.fromEntries(columns.map(([column, field]) => [field, listOf(row[column])])),
      coversToId: row["covers_up_to"],
      generatedBy: row["generated_by"],
    }),
    ...(Object.keys(beside).length === 0 ? {} : { goclaw: beside }),
  };
}

export function compactionRecord(row: DatabaseRow, atMs: number): Readonly<Record<string, unknown>> {
  const retry = row["needs_summary_retry"];
  return definedFields({
    type: "compaction",
    id: rowId(row),
    timestamp: isoTime(atMs),
    summary: textOf(row["summary"]),
    firstKeptEntryId: textOf(row["first_kept_entry_id"]),
    tokensBefore: Number(row["tokens_before"] ?? 0),
    tokensAfter: row["tokens_after"],
    fromCheckpoint: row["checkpoint_id"],
    details: retry === null || retry === undefined ? null : { needsSummaryRetry: Number(retry) !== 0 },
    goclaw: definedFields({ messages_removed: row["messages_removed"], from_checkpoint: row["from_checkpoint"] }),
  });
}

export function rowId({ id, row_number: number }: DatabaseRow): string {
  return id === null || id === undefined ? `row-${String(number)}` : String(id);
}

/** Converts seconds, milliseconds or text to UTC milliseconds; null for any other value. */
export function timeMs(value: unknown): number | null {
  if (typeof value === "number" && Number.isFinite(value)) return value < 1e11 ? Math.round(value * 1000) : value;
  if (typeof value !== "string" || value === "") return null;
  // SQLite's text form has no zone and means UTC.
  const text = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?$/.test(value) ? `${value.replace(" ", "T")}Z` : value;
  const ms = Date.parse(text);
  return Number.isFinite(ms) ? ms : null;
}

export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
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

export function isBrokenList(value: unknown): boolean {
  return textOf(value) !== "" && listOf(value) === null;
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
