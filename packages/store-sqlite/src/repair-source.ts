import { hasErrorCode } from "@throughline/core";
import type { KeptPayload } from "@throughline/core/store";
import { openPages } from "./page-file.ts";
import { pageBytes } from "./open-connection.ts";
import type { CodedRecord } from "./record-rows.ts";
import { readable, RecordReader } from "./record-reader.ts";
import { databasePath } from "./database-path.ts";
import { Salvage } from "./salvage.ts";
import { sessionNumbers } from "./session-numbers.ts";
import type { Session, SessionRow } from "./statements.ts";
import { openRaw } from "./store-file.ts";
import type { StoreHandle } from "./store-handle.ts";

/** A session of a damaged store: its row, or null where only records are left of it. */
export interface FoundSession {
  readonly session: Session;
  readonly row: SessionRow | null;
}

/**
 * What can be read of a damaged store: by SQLite as far as it goes, and from the pages themselves where it does not, or
 * where it refuses the file.
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
            this.#handle.read(({ statements }) => statements.findSession.get(session), this.#signal),
          );
          if (row !== undefined) yield { session, row };
        }
      }
    // What stands in a list that can be read whole is all there is.
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

  async record(row: SessionRow, seq: number): Promise<CodedRecord | undefined> {
    return (await this.#reader?.read(row, seq)) ?? this.salvage.record(row, seq);
  }
}

/** Whether SQLite reads the file at all. */
export async function isReadable(handle: StoreHandle, signal: AbortSignal | undefined): Promise<boolean> {
  try {
    await handle.read(() => undefined, signal);
    return true;
  } catch (error) {
    if (hasErrorCode(error, "STORE_CORRUPT")) return false;
    throw error;
  }
}
