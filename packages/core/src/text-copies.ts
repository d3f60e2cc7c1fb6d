import { derivedFromOf } from "./record-origin.ts";
import type { SessionRecord } from "./record.ts";
import type { StoredRecord } from "./stored-records.ts";
import { isTombstone } from "./redaction-tombstone.ts";
import { withheldSummary } from "./summary-parts.ts";
import { throughlineKind } from "./throughline-record.ts";

/** Something of a session that may repeat what its records say. */
export interface TextCopy {
  /** A record type, a kind of ours, `derived record`, `entry.<field>`, or `partial`. */
  readonly what: string;
  /** Where it names what it repeats. */
  readonly reference: string;
  /**
   * What a redaction of the record does to the copy, in the same operation. `redacted`: a tombstone takes its place.
   * `removed`: it is deleted. `withheld`: it stays in its place, and a sentence takes that of its text until another is written.
   */
  readonly fate: "redacted" | "removed" | "withheld";
}

/** What a search for copies knows, from the first redacted record on. */
export interface CopySearch {
  /** Redacted records, and the other records of their units; grows during the search. */
  readonly gone: Set<string>;
  /** Compactions written after the redacted records. */
  readonly compactionIds: ReadonlySet<string>;
  /** Ids of the tool calls in redacted replies. */
  readonly callIds: Set<string>;
  /** The parent of each record that was met. */
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

/** What a framework's adapter keeps beside the conversation: it names the records that it repeats. */
const frameworkCopy: RecordRule = {
  what: "record of a framework",
  reference: "copies, and copiedIn of the record that came later",
  fate: redacted,
  repeats: ({ record }, { gone }) => listedIds(record["copies"]).some((id) => gone.has(id)),
};

/** Ids in a list that a record states. */
export function listedIds(value: unknown): readonly string[] {
  return Array.isArray(value) ? (value as readonly unknown[]).filter((id) => typeof id === "string") : [];
}

/** By record type, or by kind of ours with its prefix. */
const recordRules: readonly RecordRule[] = [
  // It sums up all that stands before it.
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
    // Whoever wrote it had the way to the branch it is about before them, and the way to the place where it stands.
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

/** The fields of an entry that are made of what records say. */
export const copiedEntryFields: readonly string[] = ["title", "titleBy", "claudeSummary"];

/**
 * Everything that may repeat what records say. What a package keeps beside the records, and what copies their text, belongs
 * here: `redactRecords` and the kit go by this table, and so does `docs/formats/records.md`.
 */
export const textCopies: readonly TextCopy[] = [
  ...[derivedRecord, frameworkCopy, ...recordRules].map(({ what, reference, fate }) => ({ what, reference, fate })),
  { what: "entry.title", reference: "none: it is made of the first messages", fate: "removed" },
  { what: "entry.claudeSummary", reference: "none: the Claude Agent SDK makes it of all lines", fate: "removed" },
  { what: "partial", reference: "its turn", fate: "removed" },
];

const rulesByName: ReadonlyMap<string, RecordRule> = new Map(recordRules.map((rule) => [rule.what, rule]));

/** Whether a record repeats what one of the records says that are gone. */
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

/** What a provider says of a request may quote any message of it; an event that nobody knows, also the reply. */
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
