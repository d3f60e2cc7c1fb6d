import {
  createFinding,
  findRecordProblem,
  isFromNewerVersion,
  throughlineKind,
  ThroughlineError,
} from "@throughline/core";
import type { Finding, SessionRecord, StoredRecord } from "@throughline/core";
import { findBoundary, type Boundary } from "./find-boundary.ts";
import { neutralFromRecord } from "./neutral-from-record.ts";
import type { NeutralMessage } from "./neutral-message.ts";
import { omittedRanges, type OmittedRange, type RecordFate } from "./omitted-ranges.ts";
import { applyEdit, collectEdits, supersedingSummary, type RecordEdit } from "./record-edits.ts";
import { walkIndexes } from "./walk-branch.ts";

export interface BuildContextOptions {
  /** The record the context ends with; null gives an empty one. @default the last main record */
  readonly headId?: string | null;
}

/** What a model would be told, before the rules of its provider are applied. */
export interface Context {
  /** The record it ends with; null when it is empty. */
  readonly headId: string | null;
  readonly messages: readonly NeutralMessage[];
  /** The number of messages, as pi and OpenClaw count them. */
  readonly recordsInContext: number;
  /** The model last set or last heard on the branch. */
  readonly model: { readonly provider: string; readonly modelId: string } | null;
  /** `off` when the branch sets none. */
  readonly thinkingLevel: string;
  /** The compaction whose summary comes first; null when there is none. */
  readonly summaryId: string | null;
  readonly omitted: readonly OmittedRange[];
  readonly findings: readonly Finding[];
}

/**
 * The context at a head: the summary of the newest compaction, the records it keeps, and those after it.
 * Positions on the branch decide, never the order of ids or times.
 *
 * @param records in order of seq: a whole log, or its end as `readWindow` gives it
 * @throws {ThroughlineError} RECORD_FROM_NEWER_VERSION when a record may mean something this build cannot know
 */
export function buildContext(records: readonly StoredRecord[], options: BuildContextOptions = {}): Context {
  const headId =
    options.headId === undefined ? (records.findLast((record) => !record.side)?.id ?? null) : options.headId;
  const { indexes, findings } = walkIndexes(records, headId);
  const path = indexes.map((index) => records[index] as StoredRecord);
  refuseNewer(records, path);
  const boundary = findBoundary(path, records, findings);
  const edits = collectEdits(path, findings);
  const collected = collectMessages({ records, path, boundary, edits, findings });
  return {
    headId: path.at(-1)?.id ?? null,
    messages: collected.messages,
    recordsInContext: collected.messages.length,
    model: lastModel(path),
    thinkingLevel: lastThinkingLevel(path),
    summaryId: boundary?.type === "compaction" ? (path[boundary.at]?.id ?? null) : null,
    omitted: omittedRanges(records, fatesOf(records, indexes, collected.fates)),
    findings,
  };
}

/** A record of a newer version on another branch cannot touch this one; a side record might, wherever it hangs. */
function refuseNewer(records: readonly StoredRecord[], path: readonly StoredRecord[]): void {
  const found =
    path.find((stored) => isFromNewerVersion(stored.record)) ??
    records.find((stored) => stored.side && isFromNewerVersion(stored.record));
  if (found === undefined) return;
  const kind = throughlineKind(found.record);
  throw new ThroughlineError(
    "RECORD_FROM_NEWER_VERSION",
    `record ${found.id} is of a kind or version this build cannot read: ${kind}`,
    {
      details: { recordId: found.id, seq: found.seq, kind },
    },
  );
}

interface Collection {
  readonly records: readonly StoredRecord[];
  readonly path: readonly StoredRecord[];
  readonly boundary: Boundary | null;
  readonly edits: ReadonlyMap<string, RecordEdit>;
  readonly findings: Finding[];
}

interface Collected {
  readonly messages: readonly NeutralMessage[];
  /** By position on the path. */
  readonly fates: readonly RecordFate[];
}

function collectMessages(collection: Collection): Collected {
  const { records, path, boundary, edits, findings } = collection;
  const messages: NeutralMessage[] = [];
  const fates: RecordFate[] = [];
  const keptFrom = boundary?.keptFrom ?? 0;
  const summary = boundary?.type === "compaction" ? summaryMessage(collection, boundary) : null;
  if (summary !== null) messages.push(summary.message);
  // A message below this seq was written when what stands before it read otherwise.
  let changedBeforeSeq = summary?.changedBeforeSeq ?? 0;
  let changedBeforeMs = 0;
  for (let at = 0; at < path.length; at++) {
    const stored = path[at] as StoredRecord;
    if (stored.side || !contributingTypes.has(stored.type)) continue;
    if (at < keptFrom) {
      fates[at] = boundary?.type === "reset" ? "reset" : "summarized";
      continue;
    }
    const edit = edits.get(stored.id);
    const isBeforeBoundary = boundary !== null && at < boundary.at;
    const isPrefixChanged =
      isBeforeBoundary || stored.seq < changedBeforeSeq || (stored.tsMs !== null && stored.tsMs < changedBeforeMs);
    if (edit !== undefined) changedBeforeSeq = Math.max(changedBeforeSeq, edit.seq);
    changedBeforeMs = Math.max(changedBeforeMs, redactedAtMs(stored.record));
    const outcome = contribution(stored, edit, isPrefixChanged, findings);
    if (typeof outcome === "string") fates[at] = outcome;
    if (outcome === null || typeof outcome === "string") continue;
    if (isBeforeBoundary && boundary.type === "reset" && !resetKeeps.has(outcome.role)) {
      fates[at] = "reset";
      continue;
    }
    messages.push(outcome);
    fates[at] = "included";
  }
  if (boundary !== null && summary !== null) fates[boundary.at] = "included";
  return { messages, fates };

  function summaryMessage(_: Collection, cut: Boundary): { message: NeutralMessage; changedBeforeSeq: number } | null {
    const stored = path[cut.at] as StoredRecord;
    const edit = edits.get(stored.id);
    if (edit?.replacement === null) return null;
    const record = edit === undefined ? stored.record : (applyEdit(stored.record, edit, findings) ?? stored.record);
    const better = supersedingSummary(records, stored.id);
    const text = better?.summary ?? (record["summary"] as string);
    return {
      message: {
        role: "compactionSummary",
        recordId: stored.id,
        seq: stored.seq,
        tsMs: stored.tsMs,
        isPrefixChanged: false,
        tokensBefore: record["tokensBefore"] as number,
        content: text === "" ? [] : [{ type: "text", text }],
      },
      changedBeforeSeq: Math.max(better?.seq ?? 0, edit?.seq ?? 0),
    };
  }
}

const contributingTypes: ReadonlySet<string> = new Set(["message", "custom_message", "branch_summary", "custom"]);

/** A reset carries the talk over, nothing that other programs put into it. */
const resetKeeps: ReadonlySet<string> = new Set(["user", "assistant", "toolResult", "redacted"]);

function contribution(
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
  if (isExcluded(stored.record)) return "excluded";
  if (edit?.replacement === null) return "edited";
  const record = edit === undefined ? stored.record : (applyEdit(stored.record, edit, findings) ?? stored.record);
  return neutralFromRecord(stored, record, isPrefixChanged);
}

function isExcluded(record: SessionRecord): boolean {
  return (
    record.type === "message" && (record["message"] as { excludeFromContext?: unknown }).excludeFromContext === true
  );
}

function redactedAtMs(record: SessionRecord): number {
  if (throughlineKind(record) !== "redaction") return 0;
  const at = (record["data"] as { redactedAtMs?: unknown } | undefined)?.redactedAtMs;
  return typeof at === "number" ? at : 0;
}

function lastThinkingLevel(path: readonly StoredRecord[]): string {
  const found = path.findLast(
    (stored) => stored.type === "thinking_level_change" && findRecordProblem(stored.record) === null,
  );
  return found === undefined ? "off" : (found.record["thinkingLevel"] as string);
}

function lastModel(path: readonly StoredRecord[]): Context["model"] {
  for (let at = path.length - 1; at >= 0; at--) {
    const { type, record } = path[at] as StoredRecord;
    if (type === "model_change") {
      const { provider, modelId } = record;
      if (typeof provider === "string" && typeof modelId === "string") return { provider, modelId };
    }
    const message =
      type === "message" ? (record["message"] as Readonly<Record<string, unknown>> | null | undefined) : null;
    if (message?.["role"] !== "assistant") continue;
    const { provider, model } = message;
    if (typeof provider === "string" && typeof model === "string") return { provider, modelId: model };
  }
  return null;
}

/** The fates by position in the log; what is not on the path lies on another branch. */
function fatesOf(
  records: readonly StoredRecord[],
  indexes: readonly number[],
  pathFates: readonly RecordFate[],
): RecordFate[] {
  const fates: RecordFate[] = records.map((stored) =>
    !stored.side && contributingTypes.has(stored.type) && stored.type !== "custom" ? "other-branch" : undefined,
  );
  for (let at = 0; at < indexes.length; at++) fates[indexes[at] as number] = pathFates[at];
  return fates;
}
