import { redactTable } from "./store-option-tables.ts";
import { assertKnownOptions } from "./option-checks.ts";
import { appendOnce } from "./append-once.ts";
import { findCopies } from "./find-copies.ts";
import { loadExisting } from "./open-session.ts";
import { draftsFingerprint } from "./prepare-drafts.ts";
import type { RecordDraft } from "./record-draft.ts";
import { firstRecordIdOf } from "./record-origin.ts";
import { withheldSummary } from "./summary-parts.ts";
import { copiedEntryFields } from "./text-copies.ts";
import { hasErrorCode, ThroughlineError } from "./throughline-error.ts";
import { throughlineDraft } from "./throughline-record.ts";
import type { SessionRef } from "./session-ref.ts";
import type { SharedRecords } from "./store-facets.ts";
import { sha256Hex } from "./sha256.ts";
import type { RedactOptions, RedactResult, SessionStore } from "./session-store.ts";

/** An append is tried this many times when other writers move the head in between. */
const maxMoves = 64;

const summaryTypes: ReadonlySet<string> = new Set(["compaction", "checkpoint", "branch_summary"]);

/**
 * Redacts records, and with them the records that may repeat their content and need not keep their place
 * (`findCopies`). `seqs` of the result includes both. Later compactions lose their text in the same operation:
 * `withheldSummary` replaces it. A note `summary-outdated` names these compactions, so that the next compaction writes
 * them again.
 *
 * The notes go first, so that a process that ends in between has withheld too much and not too little. The last note is
 * written after the records are erased, even without a summary. Every process that has the session open notices this
 * note and reads the records again. Sessions that share the records get such a note too, and lose their own summaries of
 * the records in the same way. An archived session gets no notes.
 *
 * With `texts`, the records and their copies keep everything but the texts, and so do summaries. Only the last note is
 * written then, and the caller names the fields of the entry that repeat a text.
 * @throws {ThroughlineError} INPUT_INVALID; SESSION_REPLACED when the session is reset meanwhile, and what the store
 * throws
 */
export async function redactRecords(
  store: SessionStore,
  ref: SessionRef,
  ids: readonly string[],
  options: RedactOptions,
): Promise<RedactResult> {
  assertKnownOptions<RedactOptions>("redactRecords", options, redactTable);
  const { sessionId } = await loadExisting(store, ref);
  const asked = new Set(ids);
  const found = await summariesAfter(store, ref, asked);
  const seqs = await redactIn(store, { ref, sessionId }, asked, found, options);
  const sharers = (await store.fork?.sharers?.(ref, seqs)) ?? [];
  for (const sharer of sharers) await redactInFork(store, sharer, asked, options);
  return { seqs };
}

/** Redacts the summaries of a fork, and writes it the note, unless the fork was purged or reset meanwhile. */
async function redactInFork(
  store: SessionStore,
  fork: RedactedSession,
  asked: ReadonlySet<string>,
  options: RedactOptions,
): Promise<void> {
  let hasSummaries = true;
  try {
    const theirs = await summariesAfter(store, fork.ref, asked);
    hasSummaries = theirs.summaryIds.length > 0;
    if (hasSummaries) await redactIn(store, fork, theirs.ids, theirs, options);
    else await withhold(store, fork, theirs);
  } catch (error) {
    // The archive of a fork may keep the text in a summary, so a reset is passed over only when it has no summary.
    const isGone =
      hasErrorCode(error, "SESSION_NOT_FOUND") || (!hasSummaries && hasErrorCode(error, "SESSION_REPLACED"));
    if (!isGone) throw error;
  }
}

type RedactedSession = Pick<SharedRecords, "ref" | "sessionId">;

async function redactIn(
  store: SessionStore,
  session: RedactedSession,
  ids: ReadonlySet<string>,
  found: Found,
  options: RedactOptions,
): Promise<readonly number[]> {
  const { ref } = session;
  const { lastSeq, fromSeq } = found;
  const isWhole = options.texts === undefined;
  if (isWhole && found.ids.size > 0 && found.summaryIds.length > 0) await withhold(store, session, found);
  const copies = await findCopies(store, ref, { ids, fromSeq, compactionIds: found.compactionIds });
  const { seqs } = await store.redact(
    ref,
    [...ids, ...copies],
    isWhole ? { ...options, entryFields: copiedEntryFields } : options,
  );
  // A summary that was written in between may contain content that is erased by now.
  const late: Found = { seqs, ids, fromSeq, summaryIds: [], compactionIds: [], lastSeq };
  for await (const page of store.read(ref, { afterSeq: lastSeq, payload: "head" })) {
    for (const record of page.records) noteSummary(record, late);
  }
  await withhold(store, session, isWhole ? late : { ...late, summaryIds: [], compactionIds: [] });
  if (isWhole) await redactLateFields(store, ref, ids, options);
  if (late.summaryIds.length === 0) return seqs;
  const more = await findCopies(store, ref, { ids, fromSeq, compactionIds: late.compactionIds });
  const afterwards = more.length === 0 ? [] : (await store.redact(ref, more, options)).seqs;
  return [...seqs, ...afterwards];
}

/**
 * A turn that ended between the first redaction and the last note may have stored a title of the erased text. A turn
 * that ends later has read the note.
 */
async function redactLateFields(
  store: SessionStore,
  ref: SessionRef,
  ids: ReadonlySet<string>,
  options: RedactOptions,
): Promise<void> {
  const { entry } = await loadExisting(store, ref);
  if (!copiedEntryFields.some((field) => entry[field] !== undefined)) return;
  await store.redact(ref, [...ids], { ...options, entryFields: copiedEntryFields });
}

interface Found {
  readonly seqs: readonly number[];
  /** Holds only the requested ids that the session has. */
  readonly ids: ReadonlySet<string>;
  /** Copies are searched from the first of the records on, or from the record that one of them was derived from. */
  readonly fromSeq: number;
  readonly summaryIds: string[];
  readonly compactionIds: string[];
  readonly lastSeq: number;
}

/** The log is read from its end back to the first of the records, because only later summaries can repeat them. */
async function summariesAfter(store: SessionStore, ref: SessionRef, ids: ReadonlySet<string>): Promise<Found> {
  const wanted = new Set([...ids, ...[...ids].map(firstRecordIdOf).filter((id) => id !== null)]);
  const seqs: number[] = [];
  const there = new Set<string>();
  const found = { seqs, ids: there, summaryIds: [], compactionIds: [] };
  let lastSeq = 0;
  let fromSeq = Infinity;
  for await (const page of store.read(ref, { order: "descending", payload: "head" })) {
    for (const record of page.records) {
      lastSeq = Math.max(lastSeq, record.seq);
      if (!ids.has(record.id)) noteSummary(record, found);
      else {
        seqs.unshift(record.seq);
        there.add(record.id);
      }
      if (wanted.delete(record.id)) fromSeq = record.seq;
      if (wanted.size === 0) return { ...found, fromSeq, lastSeq };
    }
  }
  return { ...found, fromSeq: Math.min(fromSeq, lastSeq + 1), lastSeq };
}

function noteSummary(
  { id, type }: { readonly id: string; readonly type: string },
  found: Pick<Found, "summaryIds" | "compactionIds">,
): void {
  if (!summaryTypes.has(type)) return;
  found.summaryIds.unshift(id);
  if (type === "compaction") found.compactionIds.unshift(id);
}

/** No process has an archived session open, and an archive accepts no records, so it gets no notes. */
async function withhold(store: SessionStore, session: RedactedSession, found: Found): Promise<void> {
  if (session.ref.archiveId !== undefined) return;
  const { seqs: redactedSeqs, summaryIds, compactionIds, lastSeq } = found;
  const drafts = [
    ...compactionIds.map((summaryId) => ({ kind: "summary-superseded", summaryId, summary: withheldSummary })),
    { kind: "summary-outdated", summaryIds, redactedSeqs },
  ].map((data) => throughlineDraft("note", data));
  const { batchRecords } = store.capabilities.limits;
  // Each batch is as large as the store allows, and the last batch ends with the note that names the redacted records.
  for (let at = 0; at < drafts.length; at += batchRecords) {
    const batch = drafts.slice(at, at + batchRecords);
    const digest = sha256Hex(`${lastSeq} ${draftsFingerprint(batch)}`);
    await appendTo(store, session, batch, `redaction:${digest}`);
  }
}

/**
 * Appends to this session only, because a reset may have given its key to another session.
 * @throws {ThroughlineError} SESSION_REPLACED
 */
async function appendTo(
  store: SessionStore,
  { ref, sessionId }: RedactedSession,
  drafts: readonly RecordDraft[],
  idempotencyKey: string,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const now = await loadExisting(store, ref);
    if (now.sessionId !== sessionId) {
      const message = `Session ${sessionId} was reset while its records were redacted: the key ${ref.key} has the new session ${now.sessionId}.`;
      const details = { ...ref, sessionId, newSessionId: now.sessionId };
      const remedy =
        "The earlier session is archived: `throughline sessions --archived` lists it. Check there that the records are redacted.";
      throw new ThroughlineError("SESSION_REPLACED", message, { details, remedy });
    }
    try {
      await appendOnce(store, ref, drafts, { idempotencyKey, expect: { head: now.head.headId } });
      return;
    } catch (error) {
      if (!hasErrorCode(error, "APPEND_CONFLICT") || attempt >= maxMoves) throw error;
    }
  }
}
