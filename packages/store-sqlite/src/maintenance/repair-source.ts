import { hasErrorCode } from "@throughline/core";
import { entrySourceDigest } from "@throughline/core/internal";
import type { KeptPayload, RowCoder } from "@throughline/store-kit/internal";
import { firstSweepAt } from "../keyed-appends.ts";
import { pageBytes } from "../open-connection.ts";
import { schemaDamage } from "../check-schema.ts";
import { openPages } from "./page-file.ts";
import { purgedSources } from "../purged-sources.ts";
import { readable } from "./readable.ts";
import { RecordReader } from "./record-reader.ts";
import type { CodedRecord } from "../record-rows.ts";
import { Salvage } from "./salvage.ts";
import { slotOf } from "../session-rows.ts";
import { placeOf } from "../rows.ts";
import type { PurgedSourceRow, Session, SessionRow } from "../rows.ts";
import type { StoreContext } from "../store-context.ts";
import { databasePath } from "../file-facts.ts";
import { openRaw } from "../store-file.ts";
import type { StoreHandle } from "../store-handle.ts";
import { sessionNumbers } from "./session-numbers.ts";

/** Holds a session of a damaged store. Its row is null where only records are left. */
export interface FoundSession {
  readonly session: Session;
  readonly row: SessionRow | null;
}

/**
 * Reads a damaged store through SQLite as far as possible, and from the pages where SQLite fails or refuses the file.
 */
export class RepairSource {
  readonly salvage: Salvage;
  readonly #handle: StoreHandle;
  readonly #signal: AbortSignal | undefined;
  /** Null where SQLite does not open the file. */
  readonly #reader: RecordReader | null;

  private constructor(handle: StoreHandle, salvage: Salvage, isOpen: boolean, signal: AbortSignal | undefined) {
    this.#handle = handle;
    this.salvage = salvage;
    this.#signal = signal;
    this.#reader = isOpen ? new RecordReader(handle, signal) : null;
  }

  static async of(handle: StoreHandle, isOpen: boolean, signal: AbortSignal | undefined): Promise<RepairSource> {
    const raw = openRaw(databasePath(handle.context.path));
    handle.whenClosed(raw.close);
    const pages = openPages(raw.file, raw.log, pageBytes);
    return new RepairSource(
      handle,
      await Salvage.of(pages, handle.context, () => handle.life.begin(signal)),
      isOpen,
      signal,
    );
  }

  async *sessions(): AsyncGenerator<FoundSession> {
    const seen = new Set<Session>();
    let isWhole = this.#reader !== null;
    if (this.#reader !== null)
      for await (const { sessions, damage } of sessionNumbers(this.#handle, this.#signal)) {
        isWhole &&= damage === null;
        for (const session of sessions) {
          seen.add(session);
          const row = await readable(() =>
            this.#handle.read(({ statements }) => statements.rawSession.get(session), this.#signal),
          );
          if (row !== undefined) yield { session, row };
        }
      }
    // A list that can be read whole has every session.
    if (isWhole) return;
    for (const found of this.salvage.sessions()) if (!seen.has(found.session)) yield found;
  }

  async entry(row: SessionRow): Promise<KeptPayload | undefined> {
    const bySqlite =
      this.#reader === null
        ? undefined
        : await readable(() =>
            this.#handle.read(({ statements }) => statements.findEntry.get(row.session)?.entry, this.#signal),
          );
    return bySqlite ?? this.salvage.entry(row);
  }

  async *purgedSources(): AsyncGenerator<readonly PurgedSourceRow[]> {
    try {
      if (this.#reader !== null) return yield* purgedSources(this.#handle, this.#signal);
    } catch (error) {
      if (!hasErrorCode(error, "STORE_CORRUPT")) throw error;
    }
    yield this.salvage.purgedSources();
  }

  async record(row: SessionRow, seq: number): Promise<CodedRecord | undefined> {
    return (await this.#reader?.read(row, seq)) ?? this.salvage.record(row, seq);
  }
}

/** Returns the source that an entry states, or null where the entry cannot be decoded. */
export function statedSource(coder: RowCoder, row: SessionRow, entry: KeptPayload): string | null {
  try {
    return entrySourceDigest(coder.decodeEntry(placeOf(row), entry));
  } catch (error) {
    if (hasErrorCode(error, "CODEC_FAILED")) return null;
    throw error;
  }
}

/**
 * Returns whether SQLite can read the file, and its schema is undamaged. A query over a damaged schema leaves out rows.
 */
export async function isReadable(handle: StoreHandle, signal: AbortSignal | undefined): Promise<boolean> {
  try {
    return await handle.read(({ database }) => schemaDamage(database) === null, signal);
  } catch (error) {
    if (hasErrorCode(error, "STORE_CORRUPT")) return false;
    throw error;
  }
}

/**
 * Creates a row for a session of which only records are left. Its key carries its number, because nothing else is
 * known.
 */
export function recreatedRow(session: Session, salvage: Salvage, { clock, random }: StoreContext): SessionRow {
  const nowMs = clock.nowMs();
  const row: SessionRow = {
    session,
    namespace: "",
    agent_id: "main",
    key: `agent:main:recovered-${session}`,
    archived: 0,
    session_id: `recovered-${session}-${random.uint32().toString(16)}`,
    revision: 1,
    last_seq: salvage.lastSeq(session),
    head_id: null,
    window_seq: null,
    fence: 0,
    turn: null,
    message_count: 0,
    created_at_ms: nowMs,
    updated_at_ms: nowMs,
    updated_slot: slotOf(nowMs),
    ids_to_seq: 0,
    keyed_next: 1,
    keyed_rows: 0,
    keyed_sweep_at: firstSweepAt(0),
    keyed_horizon_ms: nowMs,
    origin: null,
    origin_seq: null,
    source_digest: null,
    crc: null,
  };
  let [messages, headId]: [number, string | null] = [0, null];
  let [firstMs, lastMs] = [Infinity, 0];
  for (const seq of salvage.seqs(session)) {
    const found = salvage.record(row, seq);
    if (found === undefined) continue;
    const { id, side, type, storedAtMs } = found.row;
    if (!side) headId = id;
    if (type === "message") messages += 1;
    firstMs = Math.min(firstMs, storedAtMs ?? nowMs);
    lastMs = Math.max(lastMs, storedAtMs ?? 0);
  }
  const updatedMs = lastMs === 0 ? nowMs : lastMs;
  return {
    ...row,
    head_id: headId,
    message_count: messages,
    created_at_ms: Math.min(firstMs, updatedMs),
    updated_at_ms: updatedMs,
    updated_slot: slotOf(updatedMs),
  };
}

/** Returns the row under a key and an id that no other session has. */
export function renamedRow(row: SessionRow): SessionRow {
  const ending = `recovered-${row.session}`;
  return { ...row, key: `${row.key}:${ending}`, session_id: `${row.session_id.slice(0, 100)}-${ending}` };
}
