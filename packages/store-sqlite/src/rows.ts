import type { RecordHead } from "@throughline/core/internal";
import type { SessionRef } from "@throughline/core";
import type { KeptPayload, PayloadPlace } from "@throughline/store-kit/internal";

/**
 * The rest of a purged session stays in this namespace until it is deleted. No namespace can have this name, and a
 * request for it finds nothing.
 */
export const purgedNamespace = "(purged)";

/** Holds the row of a session: its address and its state. */
export interface SessionRow {
  readonly session: number;
  readonly namespace: string;
  readonly agent_id: string;
  readonly key: string;
  readonly archived: number;
  readonly session_id: string;
  readonly revision: number;
  readonly last_seq: number;
  readonly head_id: string | null;
  readonly window_seq: number | null;
  readonly fence: number;
  readonly turn: string | null;
  readonly message_count: number;
  readonly created_at_ms: number;
  readonly updated_at_ms: number;
  /** Holds the minute of `updated_at_ms`, by which sessions are listed. */
  readonly updated_slot: number;
  /** States up to which seq the ids of the session are in `store_record_ids`. */
  readonly ids_to_seq: number;
  /** Numbers the next keyed append. */
  readonly keyed_next: number;
  readonly keyed_rows: number;
  /** States the number of rows at which old keys are deleted. */
  readonly keyed_sweep_at: number;
  /** States the time of the newest keyed append that was deleted. */
  readonly keyed_horizon_ms: number;
  /** Names the session whose records come before this session's own records. Null when the session is no fork. */
  readonly origin: Session | null;
  /** States the last shared seq of the origin. */
  readonly origin_seq: number | null;
  /** Holds the `entrySourceDigest` of the entry, by which an imported session is found. */
  readonly source_digest: string | null;
  /** CRC-32 of the row; null while the row is being created. */
  readonly crc: number | null;
}

/** Holds the columns of `store_records` under the names of core. `side` is 0 or 1. */
export interface RecordHeadRow extends Omit<RecordHead, "side"> {
  readonly side: number;
  readonly headCrc: number | null;
}

export interface RecordContentRow extends RecordHeadRow {
  readonly text: KeptPayload;
  /** 1: the source is text. 2: the source is bytes. Null: the text is the source. */
  readonly sourceForm: number | null;
  readonly source: KeptPayload | null;
  /** Numbers the payload that holds the text. Null when the row holds it. */
  readonly textPayload: number | null;
  readonly sourcePayload: number | null;
}

export type RecordTextRow = readonly [
  seq: number,
  side: number,
  tsMs: number | null,
  storedAtMs: number | null,
  bytes: number,
  crc: number | null,
  headCrc: number | null,
  text: KeptPayload,
  sourceForm: number | null,
  source: KeptPayload | null,
];

export interface EntryRow {
  readonly entry: KeptPayload;
  /** CRC-32 of the entry and the number of its session. */
  readonly crc: number | null;
}

/** States when a session of a source was purged last from an agent. */
export interface PurgedSourceRow {
  readonly namespace: string;
  readonly agent_id: string;
  readonly source_digest: string;
  readonly purged_at_ms: number;
  /** CRC-32 of the other columns. */
  readonly crc: number;
}

export interface KeyedAppendRow {
  readonly digest: Uint8Array;
  readonly number: number;
  readonly at_ms: number;
  readonly from_seq: number;
  readonly record_count: number;
  readonly result: string;
}

/** Numbers a session in the file. */
export type Session = number;

export function refOf(row: Pick<SessionRow, "namespace" | "agent_id" | "key" | "archived" | "session_id">): SessionRef {
  const ref = { namespace: row.namespace, agentId: row.agent_id, key: row.key };
  return row.archived === 1 ? { ...ref, archiveId: row.session_id } : ref;
}

/** Returns what the key of a purged session's row becomes. Its records decode by their place until they are deleted. */
export function purgedKeyOf({ namespace, agent_id: agentId, session_id: sessionId }: SessionRow): string {
  return JSON.stringify([namespace, agentId, sessionId]);
}

/** Returns the place of the records of a row, which may be the rest of a purged session. */
export function keptPlaceOf(row: SessionRow): PayloadPlace {
  if (row.namespace !== purgedNamespace || row.key === "") return placeOf(row);
  const [namespace, agentId, sessionId] = JSON.parse(row.key) as [string, string, string];
  return { ref: { namespace, agentId, key: "" }, sessionId };
}

export function placeOf(row: SessionRow): PayloadPlace {
  return { ref: refOf(row), sessionId: row.session_id };
}
