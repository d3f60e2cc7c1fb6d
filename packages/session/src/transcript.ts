import { loadExisting, optionKinds, type OptionTable } from "@throughline/core/internal";
import {
  readWindow,
  type RecordWindow,
  type SessionRef,
  type SessionStore,
  type StoredRecord,
} from "@throughline/core";
import { buildContext } from "@throughline/history";
import { type NeutralMessage } from "@throughline/history/internal";

/** Options of `session.transcript`. */
export interface TranscriptOptions {
  /**
   * Whether messages that a summary has replaced are part of it, instead of the summary. Reads the whole session.
   * @default false
   */
  readonly all?: boolean;
  /** Aborts the read, which then throws ABORTED. */
  readonly signal?: AbortSignal;
}

/** The messages of a session, in the shape that no provider owns. */
export interface SessionTranscript {
  /** The id of the session that was read. */
  readonly sessionId: string;
  /** The record it ends with; null when the session is empty. */
  readonly headId: string | null;
  /** The summary it begins with; null when there is none, and with `all`. */
  readonly summaryId: string | null;
  /** Oldest first. `recordId` and `seq` name the record of each. */
  readonly messages: readonly NeutralMessage[];
}

/** The kinds of the options of `transcript`. */
export const transcriptTable: OptionTable<TranscriptOptions> = { all: optionKinds.flag, signal: optionKinds.signal };

/** Reads the transcript of a session. */
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

/** The records that there are now, without boundaries. */
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

/** A summary that is no part of the conversation takes the place of nothing. */
function withoutBoundary(stored: StoredRecord): StoredRecord {
  return stored.type === "compaction" || stored.type === "reset" ? { ...stored, side: true } : stored;
}
