import { throughlineDraft } from "./throughline-record.ts";
import type { SessionRecord } from "./record.ts";
import type { SessionRef } from "./session-ref.ts";
import type { RedactOptions, RedactResult, SessionStore } from "./session-store.ts";

const summaryTypes: ReadonlySet<string> = new Set(["compaction", "checkpoint", "branch_summary"]);

/**
 * Redacts records and marks the summaries written after them, which may repeat what was redacted: a note
 * `summary-outdated` names them, and whoever summarises next writes them anew.
 */
export async function redactRecords(
  store: SessionStore,
  ref: SessionRef,
  ids: readonly string[],
  options: RedactOptions,
): Promise<RedactResult> {
  const result = await store.redact(ref, ids, options);
  const firstSeq = Math.min(...result.seqs);
  const summaryIds: string[] = [];
  if (Number.isFinite(firstSeq)) {
    for await (const page of store.read(ref, { afterSeq: firstSeq, payload: "head" })) {
      summaryIds.push(...page.records.filter((record) => summaryTypes.has(record.type)).map((record) => record.id));
    }
  }
  if (summaryIds.length > 0) {
    await store.append(ref, [
      throughlineDraft("note", { kind: "summary-outdated", summaryIds, redactedSeqs: result.seqs }),
    ]);
  }
  return result;
}

/** What takes a redacted record's place: it says that something was here, when it went and why, and nothing of what it said. */
export function redactionTombstone(
  record: SessionRecord,
  info: { readonly side: boolean; readonly bytes: number; readonly reason: string; readonly redactedAtMs: number },
): SessionRecord {
  const data = {
    reason: info.reason,
    redactedAtMs: info.redactedAtMs,
    originalType: record.type,
    originalBytes: info.bytes,
    side: info.side,
  };
  const { type, ...fields } = throughlineDraft("redaction", data);
  return { type, id: record.id, parentId: record.parentId, timestamp: record.timestamp, ...fields };
}
