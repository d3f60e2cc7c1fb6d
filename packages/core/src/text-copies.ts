import { derivedFromOf } from "./record-origin.ts";
import type { SessionRecord } from "./record.ts";
import type { StoredRecord } from "./stored-records.ts";
import { isTombstone } from "./redaction-tombstone.ts";
import { withheldSummary } from "./summary-parts.ts";
import { throughlineKind } from "./throughline-record.ts";

/** A copy is a part of a session that may repeat the content of its records. */
export interface TextCopy {
  /** The name is a record type, a kind of Throughline record, `derived record`, `entry.<field>`, or `partial`. */
  readonly what: string;
  /** The copy names the repeated record in this field. */
  readonly reference: string;
  /**
   * A redaction of the record changes the copy in the same operation. `redacted`: a tombstone replaces the copy.
   * `removed`: the copy is deleted. `withheld`: the copy keeps its place, and a sentence replaces its text until
   * another text is written.
   */
  readonly fate: "redacted" | "removed" | "withheld";
}

/** The search collects these facts from the first redacted record on. */
export interface CopySearch {
  /** Holds the redacted records and the other records from the same sources; the set grows during the search. */
  readonly gone: Set<string>;
  /** These compactions were written after the redacted records, so they may repeat them. */
  readonly compactionIds: ReadonlySet<string>;
  /** Holds the ids of the tool calls in redacted replies, because approvals name these ids. */
  readonly callIds: Set<string>;
  /** Holds the parent of each record that was read, so that branches can be followed. */
  readonly parents: ReadonlyMap<string, string | null>;
}

type RecordRule = TextCopy & { readonly repeats: (stored: StoredRecord, search: CopySearch) => boolean };

const redacted = "redacted";

const derivedRecord: RecordRule = {
  what: "derived record",
  reference: "derivedFrom.id",
  fate: redacted,
  repeats: ({ record }, { gone }) => {
    const from = derivedFromOf(record);
    return from !== null && gone.has(from.id);
  },
};

/** An adapter of a framework keeps such records beside the conversation. They name the records that they repeat. */
const frameworkCopy: RecordRule = {
  what: "record of a framework",
  reference: "copies, and copiedIn of the record that came later",
  fate: redacted,
  repeats: ({ record }, { gone }) => listedIds(record["copies"]).some((id) => gone.has(id)),
};

/** A record may state any value, so only texts in a list count as ids. */
export function listedIds(value: unknown): readonly string[] {
  return Array.isArray(value) ? (value as readonly unknown[]).filter((id) => typeof id === "string") : [];
}

/** Each rule is named by a record type, or by a kind of Throughline record with its prefix. */
const recordRules: readonly RecordRule[] = [
  // A checkpoint summarizes all records before it.
  { what: "checkpoint", reference: "its place in the log", fate: redacted, repeats: () => true },
  {
    what: "compaction",
    reference: "its place in the log",
    fate: "withheld",
    repeats: ({ record }) => !isTombstone(record),
  },
  {
    what: "branch_summary",
    reference: "fromId",
    fate: redacted,
    // The writer of the summary had read the path to the summarized branch, and the path to the place of the summary.
    repeats: ({ record, parentId }, search) => {
      const { fromId } = record;
      return isBehind(typeof fromId === "string" ? fromId : null, search) || isBehind(parentId, search);
    },
  },
  {
    what: "context_edit",
    reference: "targetId",
    fate: redacted,
    repeats: ({ record }, search) => isEdit(record, search),
  },
  {
    what: "throughline.edit",
    reference: "data.targetId",
    fate: redacted,
    repeats: ({ record }, search) => isEdit(dataOf(record), search),
  },
  {
    what: "throughline.note",
    reference: "data.summaryId",
    fate: redacted,
    repeats: ({ record }) => {
      const { kind, summary } = dataOf(record);
      return kind === "summary-superseded" && summary !== withheldSummary;
    },
  },
  {
    what: "throughline.call",
    reference: "its place in the log",
    fate: redacted,
    repeats: ({ record }) => dataOf(record)["splice"] !== undefined && dataOf(record)["splice"] !== null,
  },
  {
    what: "throughline.exchange",
    reference: "data.copies, data.forms; the messages before an error or an unknown event",
    fate: redacted,
    repeats: (stored, search) => namesAmongCopies(stored, search) || mayQuote(dataOf(stored.record), search),
  },
  { what: "throughline.prompt", reference: "data.copies", fate: redacted, repeats: namesAmongCopies },
  {
    what: "throughline.approval",
    reference: "data.callId",
    fate: redacted,
    repeats: ({ record }, { callIds }) => {
      const { callId } = dataOf(record);
      return typeof callId === "string" && callIds.has(callId);
    },
  },
];

/** These fields of an entry are derived from the content of records. */
export const copiedEntryFields: readonly string[] = ["title", "titleBy", "claudeSummary"];

/**
 * The table lists everything that may repeat the content of records. A package that keeps data beside the records, or
 * copies their text, must add its copy here. `redactRecords`, the conformance kit and `docs/formats/records.md` follow
 * this table.
 */
export const textCopies: readonly TextCopy[] = [
  ...[derivedRecord, frameworkCopy, ...recordRules].map(({ what, reference, fate }) => ({ what, reference, fate })),
  { what: "entry.title", reference: "none: it is made of the first messages", fate: "removed" },
  { what: "entry.claudeSummary", reference: "none: the Claude Agent SDK makes it of all lines", fate: "removed" },
  { what: "partial", reference: "its turn", fate: "removed" },
];

const rulesByName: ReadonlyMap<string, RecordRule> = new Map(recordRules.map((rule) => [rule.what, rule]));

export function repeatsGone(stored: StoredRecord, search: CopySearch): boolean {
  const kind = throughlineKind(stored.record);
  const rule = rulesByName.get(kind === null ? stored.type : `throughline.${kind}`);
  if (derivedRecord.repeats(stored, search) || frameworkCopy.repeats(stored, search)) return true;
  return rule?.repeats(stored, search) === true;
}

function dataOf(record: SessionRecord): Readonly<Record<string, unknown>> {
  const { data } = record;
  return typeof data === "object" && data !== null ? (data as Readonly<Record<string, unknown>>) : {};
}

function namesAmongCopies({ record }: StoredRecord, { gone }: CopySearch): boolean {
  const { copies, forms } = dataOf(record);
  if (typeof forms === "object" && forms !== null && Object.keys(forms).some((id) => gone.has(id))) return true;
  return Array.isArray(copies) && copies.some((id) => gone.has(id as string));
}

/** A provider's error may quote any message of the request. An unknown event may also quote the reply. */
function mayQuote(exchange: Readonly<Record<string, unknown>>, search: CopySearch): boolean {
  const { errorBody, unknownEvents, frame, replyId } = exchange;
  if (typeof errorBody !== "string" && unknownEvents === undefined) return false;
  const entries = (Array.isArray(frame) ? frame : []) as readonly { readonly last?: unknown; readonly id?: unknown }[];
  const ids = [replyId, ...entries.map((entry) => entry?.last ?? entry?.id)];
  return ids.some((id) => typeof id === "string" && isBehind(id, search));
}

function isEdit(edit: Readonly<Record<string, unknown>>, { gone, compactionIds }: CopySearch): boolean {
  const { targetId, replacement } = edit;
  return typeof targetId === "string" && (gone.has(targetId) || compactionIds.has(targetId)) && replacement !== null;
}

function isBehind(lastId: string | null, { gone, parents }: CopySearch): boolean {
  const seen = new Set<string>();
  for (let id = lastId; id !== null && !seen.has(id); id = parents.get(id) ?? null) {
    if (gone.has(id)) return true;
    seen.add(id);
  }
  return false;
}
