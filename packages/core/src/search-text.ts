import type { SessionRecord } from "./record.ts";

export interface SearchText {
  /** Null means that the record is not a message. */
  readonly role: string | null;
  /** The record calls these tools, or holds an answer of them. */
  readonly toolNames: readonly string[];
  /** Line feeds separate the blocks of text. */
  readonly text: string;
}

/**
 * A longer record is searched only up to this number of UTF-16 units, because the rest is output of programs, not
 * words.
 */
const maxSearchTextLength = 262_144;

/**
 * Returns the words of a record that people search for: texts and thinking, calls with their arguments, results,
 * summaries and labels. Images, details and unknown blocks have no words. Returns null without any words.
 */
export function searchText(record: SessionRecord): SearchText | null {
  const found = record.type === "message" ? ofMessage(record["message"]) : ofOther(record);
  const text = found.parts
    .filter((part) => part !== "")
    .join("\n")
    .slice(0, maxSearchTextLength);
  return text === "" && found.toolNames.length === 0
    ? null
    : { role: found.role, toolNames: found.toolNames, text: text.toWellFormed() };
}

interface Found {
  readonly role: string | null;
  readonly toolNames: string[];
  readonly parts: string[];
}

function ofMessage(message: unknown): Found {
  const found: Found = { role: textOf(fieldOf(message, "role")) || null, toolNames: [], parts: [] };
  const toolName = textOf(fieldOf(message, "toolName"));
  if (toolName !== "") found.toolNames.push(toolName);
  if (found.role === "bashExecution") found.toolNames.push("bash");
  for (const name of ["command", "output"] as const) found.parts.push(textOf(fieldOf(message, name)));
  addContent(found, fieldOf(message, "content"));
  return found;
}

function addContent(found: Found, content: unknown): void {
  if (typeof content === "string") found.parts.push(content);
  if (!Array.isArray(content)) return;
  for (const block of content as readonly unknown[]) {
    const type = fieldOf(block, "type");
    if (type === "text") found.parts.push(textOf(fieldOf(block, "text")));
    if (type === "thinking") found.parts.push(textOf(fieldOf(block, "thinking")));
    if (type !== "toolCall") continue;
    const name = textOf(fieldOf(block, "name"));
    if (name !== "") found.toolNames.push(name);
    found.parts.push([name, ...textsIn(fieldOf(block, "arguments"))].join(" "));
  }
}

function ofOther(record: SessionRecord): Found {
  const found: Found = { role: null, toolNames: [], parts: [] };
  if (record.type === "compaction" || record.type === "branch_summary") found.parts.push(textOf(record["summary"]));
  if (record.type === "checkpoint") found.parts.push(...textsIn(record["checkpoint"]));
  if (record.type === "custom_message") addContent(found, record["content"]);
  if (record.type === "session_info") found.parts.push(textOf(record["name"]));
  if (record.type === "label") found.parts.push(textOf(record["label"]));
  return found;
}

/**
 * Returns every text in a value, in its order. Names of fields are not included, and levels deeper than any use are
 * skipped.
 */
function textsIn(value: unknown, depth = 0): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null || depth > 8) return [];
  return Object.values(value).flatMap((each: unknown) => textsIn(each, depth + 1));
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
