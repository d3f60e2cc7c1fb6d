import {
  createFinding,
  findRecordProblem,
  isContinueMessage,
  misspelt,
  quote,
  type Steps,
  throughlineKind,
} from "@throughline/core/internal";
import type { Finding, SessionRecord, StoredRecord } from "@throughline/core";
import type { Boundary } from "./find-boundary.ts";
import { neutralFromRecord } from "./neutral-from-record.ts";
import type { NeutralAssistant, NeutralMessage, SignedSummary } from "./neutral-message.ts";
import { reportLostOrigin } from "./lost-origin.ts";
import type { RecordFate } from "./omitted-ranges.ts";
import { applyEdit, supersedingSummary, type RecordEdit } from "./record-edits.ts";

export interface MessageSource {
  readonly records: readonly StoredRecord[];
  readonly path: readonly StoredRecord[];
  readonly boundary: Boundary | null;
  readonly edits: ReadonlyMap<string, RecordEdit>;
  readonly findings: Finding[];
}

export interface CollectedMessages {
  readonly messages: readonly NeutralMessage[];
  /** The index is the position on the path, not in the log. */
  readonly fates: readonly RecordFate[];
  readonly change: PrefixChange;
}

export function* collectMessages(source: MessageSource): Steps<CollectedMessages> {
  const { path, boundary, edits, findings } = source;
  const messages: NeutralMessage[] = [];
  const fates: RecordFate[] = [];
  const change = new PrefixChange();
  if (boundary?.summary != null) {
    const summary = summaryMessage(source, boundary.summary, change);
    if (summary !== null) messages.push(summary);
    if (boundary.type === "compaction") fates[boundary.at] = summary === null ? "edited" : "included";
    // The log does not state when the checkpoint became the beginning, so every later message counts as unbound.
    if (boundary.type === "checkpoint") change.changedAt(Infinity);
  }
  for (let at = 0; at < path.length; at++) {
    yield;
    const stored = path[at] as StoredRecord;
    if (stored.side || !contributingTypes.has(stored.type)) continue;
    if (at < (boundary?.keptFrom ?? 0)) {
      fates[at] = boundary?.type === "reset" ? "reset" : "summarized";
      continue;
    }
    const isKept = boundary !== null && at < boundary.at;
    const edit = edits.size === 0 ? undefined : edits.get(stored.id);
    const outcome = contribution(stored, edit, isKept || change.affects(stored), findings);
    change.note(stored, edit);
    if (outcome === null) continue;
    reportLostOrigin(stored, source.records, findings);
    if (typeof outcome === "string") {
      fates[at] = outcome;
    } else if (isKept && boundary.type === "reset" && !resetKeeps.has(outcome.role)) {
      fates[at] = "reset";
    } else {
      messages.push(isContinuedAt(source, at, outcome) ? { ...outcome, isContinued: true } : outcome);
      fates[at] = "included";
    }
  }
  return { messages, fates, change };
}

/**
 * Checks whether the message is an aborted reply whose continuation the user asked for in the next record of its
 * branch.
 */
function isContinuedAt(
  { path, edits }: MessageSource,
  at: number,
  message: NeutralMessage,
): message is NeutralAssistant {
  if (message.role !== "assistant" || message.stopReason !== "aborted") return false;
  let next = at + 1;
  while (path[next]?.side === true) next++;
  const asking = path[next];
  if (asking === undefined || !isContinueMessage(asking.record) || isExcluded(asking.record)) return false;
  return findRecordProblem(asking.record) === null && edits.get(asking.id)?.replacement !== null;
}

export const contributingTypes: ReadonlySet<string> = new Set([
  "message",
  "custom_message",
  "branch_summary",
  "custom",
]);

/**
 * Checks whether a record adds a message whenever it is on the path. `custom` records add one only after a redaction.
 */
export function isMessageLike(stored: StoredRecord): boolean {
  return !stored.side && stored.type !== "custom" && contributingTypes.has(stored.type);
}

/** A reset keeps the conversation, but drops the messages that programs inserted into it. */
const resetKeeps: ReadonlySet<string> = new Set(["user", "assistant", "toolResult", "redacted"]);

/**
 * Detects messages that were written when an earlier message was sent in another form than now. Their thinking
 * signatures no longer hold.
 */
export class PrefixChange {
  private beforeSeq = 0;
  private beforeMs = 0;

  affects(stored: StoredRecord): boolean {
    return stored.seq < this.beforeSeq || (stored.tsMs !== null && stored.tsMs < this.beforeMs);
  }

  note(stored: StoredRecord, edit: RecordEdit | undefined): void {
    if (edit !== undefined) this.changedAt(edit.seq);
    if (stored.type !== "custom" || throughlineKind(stored.record) !== "redaction") return;
    // A tombstone keeps the position of the record that it replaced, so only the clock states when the redaction
    // happened.
    const atMs = (stored.record["data"] as { redactedAtMs?: unknown } | undefined)?.redactedAtMs;
    if (typeof atMs === "number") this.beforeMs = Math.max(this.beforeMs, atMs);
  }

  changedAt(seq: number): void {
    this.beforeSeq = Math.max(this.beforeSeq, seq);
  }
}

function summaryMessage(source: MessageSource, stored: StoredRecord, change: PrefixChange): NeutralMessage | null {
  const edit = source.edits.get(stored.id);
  change.note(stored, edit);
  if (edit?.replacement === null) return null;
  const record = edited(stored.record, edit, source.findings);
  const better = supersedingSummary(source.records, stored.id);
  if (better !== null) change.changedAt(better.seq);
  const isBetterNewer = better !== null && better.seq > (edit?.seq ?? 0);
  const text = isBetterNewer ? better.summary : summaryText(record);
  const isAsWritten = edit === undefined && better === null;
  return {
    role: "compactionSummary",
    recordId: stored.id,
    seq: stored.seq,
    tsMs: stored.tsMs,
    isPrefixChanged: false,
    tokensBefore: (record["tokensBefore"] as number | undefined) ?? tokensAtCheckpoint(record),
    signed: isAsWritten ? signedSummary(record) : null,
    content: text === "" ? [] : [{ type: "text", text }],
  };
}

/** The provider's own compaction is stored in `details.signed`, because only its API can read the block. */
function signedSummary({ details }: SessionRecord): SignedSummary | null {
  const { signed } = (details ?? {}) as {
    readonly signed?: { readonly api?: unknown; readonly block?: unknown } | null;
  };
  const { api, block } = signed ?? {};
  if (typeof api !== "string" || typeof block !== "object" || block === null || Array.isArray(block)) return null;
  return { api, block: block as SignedSummary["block"] };
}

function summaryText(record: SessionRecord): string {
  const { checkpoint } = record as { readonly checkpoint?: { readonly summary: string } };
  return checkpoint === undefined ? (record["summary"] as string) : checkpoint.summary;
}

function tokensAtCheckpoint(record: SessionRecord): number {
  const { checkpoint } = record as { readonly checkpoint?: { readonly tokensAtCheckpoint?: unknown } };
  return typeof checkpoint?.tokensAtCheckpoint === "number" ? checkpoint.tokensAtCheckpoint : 0;
}

function edited(record: SessionRecord, edit: RecordEdit | undefined, findings: Finding[]): SessionRecord {
  return edit === undefined ? record : (applyEdit(record, edit, findings) ?? record);
}

/**
 * Returns the message that a record adds, or the reason why it adds none. Returns null for types that never add a
 * message.
 */
export function contribution(
  stored: StoredRecord,
  edit: RecordEdit | undefined,
  isPrefixChanged: boolean,
  findings: Finding[],
): NeutralMessage | "invalid" | "excluded" | "edited" | null {
  const problem = findRecordProblem(stored.record);
  if (problem !== null) {
    findings.push(createFinding("RECORD_INVALID", `${problem.path} ${problem.message}`, { recordId: stored.id }));
    return "invalid";
  }
  const meant = misspelt(stored.type);
  if (meant !== null) {
    const message = `type ${quote(stored.type)} is one letter away from ${quote(meant)}`;
    findings.push(createFinding("RECORD_INVALID", message, { recordId: stored.id }));
    return "invalid";
  }
  if (isExcluded(stored.record)) return "excluded";
  if (edit?.replacement === null) return "edited";
  return neutralFromRecord(stored, edited(stored.record, edit, findings), isPrefixChanged);
}

function isExcluded(record: SessionRecord): boolean {
  return (
    record.type === "message" && (record["message"] as { excludeFromContext?: unknown }).excludeFromContext === true
  );
}
