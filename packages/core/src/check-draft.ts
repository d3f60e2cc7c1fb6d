import { findRecordProblem } from "./find-record-problem.ts";
import { nearestName } from "./nearest-name.ts";
import type { RecordDraft } from "./record-draft.ts";
import { quote } from "./session-id.ts";
import { ThroughlineError } from "./throughline-error.ts";

/**
 * A misspelling of these record types is refused. The short types (`leaf`, `label`, `usage`, `reset`) are left out,
 * because type names of other programs, such as `preset`, are as similar to them.
 */
const guardedTypes: readonly string[] = [
  "message",
  "compaction",
  "branch_summary",
  "custom",
  "custom_message",
  "model_change",
  "thinking_level_change",
  "session_info",
  "context_edit",
  "checkpoint",
];

/**
 * Refuses a new record that no context would show: a message without usable content, or a type that misspells a known
 * type. Other types pass, and so does every line that came from a file.
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function assertDraftIsMeant(draft: RecordDraft, index: number): void {
  if (draft.type === "message") return assertMessage(draft, index);
  const meant = misspelt(draft.type);
  if (meant === null) return;
  throw wrong(
    index,
    "type",
    `its type ${quote(draft.type)} is one letter away from ${quote(meant)}`,
    `Use the type ${quote(meant)}, or a name that is less like it.`,
    meant,
  );
}

/** Returns the known type that is one letter away from an unknown type; null for a known type and for other names. */
export function misspelt(type: string): string | null {
  return guardedTypes.includes(type) ? null : nearestName(type, guardedTypes, { maxEdits: 1, exactCase: true });
}

function assertMessage(draft: RecordDraft, index: number): void {
  const { message } = draft;
  const problem = findRecordProblem({ type: "message", id: "", parentId: null, timestamp: "", message });
  if (problem === null || isWithoutContent(message)) return;
  const near = nearestField(draft, problem.path);
  const instead = near === null ? "" : `; it has ${quote(near)} instead`;
  const remedy = `Give the record a usable ${quote(problem.path)}. docs/formats/records.md describes it.`;
  throw wrong(index, problem.path, `${problem.path} ${problem.message}${instead}`, remedy, lastName(problem.path));
}

/** Other programs write an assistant's message with `content: null` when the message is empty. */
function isWithoutContent(message: unknown): boolean {
  if (typeof message !== "object" || message === null) return false;
  const { role, content } = message as { readonly role?: unknown; readonly content?: unknown };
  return role === "assistant" && content === null;
}

/** The missing field may be misspelled, so a field with a similar name is searched in the same object. */
function nearestField(draft: RecordDraft, path: string): string | null {
  const names = path.split(".");
  let holder: unknown = draft;
  for (const name of names.slice(0, -1)) holder = (holder as Readonly<Record<string, unknown>>)[name];
  const wanted = lastName(path);
  if (typeof holder !== "object" || holder === null || Object.hasOwn(holder, wanted)) return null;
  const others = Object.keys(holder).filter((name) => name.length <= 64);
  return nearestName(wanted, others, { maxEdits: 1 });
}

function lastName(path: string): string {
  return path.slice(path.lastIndexOf(".") + 1);
}

function wrong(index: number, path: string, why: string, remedy: string, nearest: string): ThroughlineError {
  return new ThroughlineError("INPUT_INVALID", `Draft ${index} was not appended: ${why}.`, {
    outcome: "not-applied",
    details: { index, path, nearest },
    remedy,
  });
}
