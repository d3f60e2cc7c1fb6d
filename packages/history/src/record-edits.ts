import { createFinding, findRecordProblem, throughlineKind } from "@throughline/core/internal";
import type { Finding, SessionRecord, StoredRecord } from "@throughline/core";

export interface RecordEdit {
  /** Identifies the edit itself, not the edited record. */
  readonly recordId: string;
  readonly seq: number;
  /** Null removes the record from the context. */
  readonly replacement: { readonly content: unknown } | null;
}

/** The last edit of a record wins. */
export function collectEdits(path: readonly StoredRecord[], findings: Finding[]): ReadonlyMap<string, RecordEdit> {
  const edits = new Map<string, RecordEdit>();
  for (const stored of path) {
    const fields = editFields(stored);
    if (fields === null) continue;
    const { targetId, replacement } = fields;
    const isReadable = replacement === null || (typeof replacement === "object" && "content" in replacement);
    if (typeof targetId !== "string" || !isReadable) {
      findings.push(
        createFinding("RECORD_INVALID", "the edit names no record or no replacement", { recordId: stored.id }),
      );
      continue;
    }
    edits.set(targetId, {
      recordId: stored.id,
      seq: stored.seq,
      replacement: replacement as RecordEdit["replacement"],
    });
  }
  return edits;
}

function editFields(stored: StoredRecord): Readonly<Record<string, unknown>> | null {
  if (stored.type === "context_edit") return stored.record;
  if (stored.type !== "custom" || throughlineKind(stored.record) !== "edit") return null;
  const data = stored.record["data"];
  return typeof data === "object" && data !== null ? (data as Readonly<Record<string, unknown>>) : {};
}

/** Replaces the content of the record. Returns null and adds a finding when the edit does not fit the record. */
export function applyEdit(record: SessionRecord, edit: RecordEdit, findings: Finding[]): SessionRecord | null {
  const content = edit.replacement?.content;
  const edited = withContent(record, content);
  const problem =
    edited === null ? { path: "targetId", message: "names a record without content" } : findRecordProblem(edited);
  if (problem === null) return edited;
  findings.push(
    createFinding("RECORD_INVALID", `the edit does not fit: ${problem.path} ${problem.message}`, {
      recordId: edit.recordId,
    }),
  );
  return null;
}

function withContent(record: SessionRecord, content: unknown): SessionRecord | null {
  switch (record.type) {
    case "message": {
      const message = record["message"] as Readonly<Record<string, unknown>>;
      const edited = message["role"] === "bashExecution" ? { output: plainText(content) } : { content };
      return { ...record, message: { ...message, ...edited } };
    }
    case "custom_message":
      return { ...record, content };
    case "compaction":
    case "branch_summary":
      return { ...record, summary: plainText(content) };
    default:
      return null;
  }
}

function plainText(content: unknown): unknown {
  if (!Array.isArray(content)) return content;
  return content.map((block: unknown) => (block as { text?: unknown } | null)?.text ?? "").join("\n");
}

/** Returns the newest text of a summary, because a side note may improve it after its compaction was written. */
export function supersedingSummary(
  records: readonly StoredRecord[],
  summaryId: string,
): { readonly summary: string; readonly seq: number } | null {
  for (let index = records.length - 1; index >= 0; index--) {
    const { type, record, seq, id } = records[index] as StoredRecord;
    if (id === summaryId) return null;
    if (type !== "custom" || throughlineKind(record) !== "note") continue;
    const data = record["data"] as Readonly<Record<string, unknown>> | null | undefined;
    if (data?.["kind"] !== "summary-superseded" || data["summaryId"] !== summaryId) continue;
    if (typeof data["summary"] === "string" && data["summary"].trim() !== "") return { summary: data["summary"], seq };
  }
  return null;
}
