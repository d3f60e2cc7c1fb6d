import { loadExisting, optionKinds, type OptionTable, type RecordWindow } from "@throughline/core/internal";
import { readWindow, type SessionRef, type SessionStore, type StoredRecord } from "@throughline/core";
import { buildContext } from "@throughline/history";
import type { NeutralMessage } from "@throughline/history/internal";

/** Sets the extent and the signal of `session.transcript`. */
export interface TranscriptOptions {
  /**
   * Includes the messages that a summary replaced, in place of the summary. Reads the whole session.
   * @default false
   */
  readonly all?: boolean;
  /** Aborts the read, which then throws ABORTED. */
  readonly signal?: AbortSignal;
}

/** Holds the messages of a session in a neutral shape. */
export interface SessionTranscript {
  /** Holds the id of the session that was read. */
  readonly sessionId: string;
  /** Holds the id of the last record; null when the session is empty. */
  readonly headId: string | null;
  /** Holds the id of the summary that the transcript begins with. Null without a summary, and with `all`. */
  readonly summaryId: string | null;
  /** Holds the messages, oldest first. `recordId` and `seq` name the record of each message. */
  readonly messages: readonly NeutralMessage[];
}

export const transcriptTable: OptionTable<TranscriptOptions> = { all: optionKinds.flag, signal: optionKinds.signal };

export async function readTranscript(
  store: SessionStore,
  ref: SessionRef,
  { all = false, signal }: TranscriptOptions,
): Promise<SessionTranscript> {
  const options = signal === undefined ? {} : { signal };
  const { state, records } = all ? await allRecords(store, ref, options) : await readWindow(store, ref, options);
  const { headId } = state.head;
  const { messages, summaryId } = buildContext(records, { headId });
  return { sessionId: state.sessionId, headId, summaryId, messages };
}

/** The boundaries of compactions and resets are ignored, so that all messages are included. */
async function allRecords(
  store: SessionStore,
  ref: SessionRef,
  options: { readonly signal?: AbortSignal },
): Promise<RecordWindow> {
  const state = await loadExisting(store, ref);
  const records: StoredRecord[] = [];
  for await (const page of store.read(ref, { ...options, beforeSeq: state.head.lastSeq + 1 }))
    records.push(...page.records.map(withoutBoundary));
  return { state, records };
}

/** A side record replaces no message, so the summary is turned into one. */
function withoutBoundary(stored: StoredRecord): StoredRecord {
  return stored.type === "compaction" || stored.type === "reset" ? { ...stored, side: true } : stored;
}
