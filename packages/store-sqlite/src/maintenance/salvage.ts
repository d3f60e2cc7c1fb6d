import { setImmediate as pause } from "node:timers/promises";
import { crc32 } from "node:zlib";
import { hasErrorCode } from "@throughline/core";
import { isTombstone } from "@throughline/core/internal";
import type { KeptPayload, RecordRow } from "@throughline/store-kit/internal";
import { recordOf, textForm } from "../record-rows.ts";
import { headChecksum, isIntactPurge } from "../row-checksums.ts";
import type { CodedRecord } from "../record-rows.ts";
import { placeOf, purgedNamespace } from "../rows.ts";
import type { PurgedSourceRow, RecordContentRow, Session, SessionRow } from "../rows.ts";
import type { StoreContext } from "../store-context.ts";
import { rowAt, rowCount } from "./table-cells.ts";
import type { CellValue, PageFile, TableRow } from "./table-cells.ts";

/** Packs the page of a row and its index there into one number. */
type Place = number;

/** No page has this many rows. */
const placesInPage = 65_536;
/** Other work runs after this many pages. */
const pagesAtOnce = 64;

/** The row of a session may claim at most this many seqs beyond the last record that was found. */
const mostLostAtEnd = 1_000_000;

/**
 * Finds the rows of a store page by page, without SQLite and without its schema, wherever a page is whole. It holds two
 * numbers for each record.
 */
export class Salvage {
  readonly #file: PageFile;
  readonly #context: StoreContext;
  readonly #sessions = new Map<Session, SessionRow>();
  readonly #entries = new Map<Session, Place[]>();
  readonly #records = new Map<Session, Map<number, Place>>();
  readonly #payloads = new Map<number, Place>();
  /** Lists sessions that are being purged, so that their rest does not come back. */
  readonly #purged = new Set<Session>();
  readonly #purgedSources = new Map<string, PurgedSourceRow>();

  private constructor(file: PageFile, context: StoreContext) {
    this.#file = file;
    this.#context = context;
  }

  static async of(file: PageFile, context: StoreContext, begin: () => void): Promise<Salvage> {
    const salvage = new Salvage(file, context);
    for (let number = 1; number <= file.pages; number++) {
      if (number % pagesAtOnce === 0) {
        await pause();
        begin();
      }
      const page = file.page(number);
      const rows = page === null ? 0 : rowCount(page, number, file.pageBytes);
      for (let index = 0; index < rows; index++) salvage.#enter(number * placesInPage + index);
    }
    return salvage;
  }

  /** Returns sessions with a row, and sessions of which only records are left, by their number. */
  sessions(): readonly { readonly session: Session; readonly row: SessionRow | null }[] {
    const numbers = new Set([...this.#sessions.keys(), ...this.#records.keys()]);
    return [...numbers]
      .filter((session) => !this.#purged.has(session))
      .toSorted((one, other) => one - other)
      .map((session) => ({ session, row: this.#sessions.get(session) ?? null }));
  }

  purgedSources(): readonly PurgedSourceRow[] {
    return [...this.#purgedSources.values()];
  }

  /** Returns the highest seq with a record, or 0. */
  lastSeq(session: Session): number {
    let last = 0;
    for (const seq of this.#records.get(session)?.keys() ?? []) last = Math.max(last, seq);
    return last;
  }

  /** Returns the seqs with a record, in order. */
  seqs(session: Session): readonly number[] {
    return [...(this.#records.get(session)?.keys() ?? [])].toSorted((one, other) => one - other);
  }

  /** Returns the entry of a session, or undefined where it is lost. */
  entry(row: SessionRow): KeptPayload | undefined {
    for (const place of this.#entries.get(row.session) ?? []) {
      const found = this.#rowAt(place);
      if (found?.kind === "entry" && this.#isEntry(row, found.entry)) return found.entry;
    }
    return undefined;
  }

  /** Returns a record, or undefined where it is lost or damaged. */
  record(session: SessionRow, seq: number): CodedRecord | undefined {
    const place = this.#records.get(session.session)?.get(seq);
    const found = place === undefined ? null : this.#rowAt(place);
    if (found?.kind !== "record") return undefined;
    const row = this.#wholeRow(found.row);
    if (row === null) return undefined;
    try {
      const { record } = recordOf(this.#context.rows, placeOf(session), row, "source");
      if (record.id !== row.id || record.type !== row.type) return undefined;
    } catch (error) {
      if (hasErrorCode(error, "STORE_CORRUPT", "CODEC_FAILED")) return undefined;
      throw error;
    }
    return { row, role: found.row.role, toolName: found.row.toolName };
  }

  #rowAt(place: Place): SalvagedRow | null {
    const row = rowAt(this.#file, Math.floor(place / placesInPage), place % placesInPage);
    return row === null ? null : salvagedRow(row);
  }

  #enter(place: Place): void {
    const found = this.#rowAt(place);
    if (found?.kind === "session") this.#enterSession(found.row);
    else if (found?.kind === "entry")
      this.#entries.set(found.session, [...(this.#entries.get(found.session) ?? []), place]);
    else if (found?.kind === "payload") this.#payloads.set(found.payload, place);
    else if (found?.kind === "record") this.#enterRecord(found.row, place);
    else if (found?.kind === "purge") this.#enterPurge(found.row);
  }

  #enterPurge(row: PurgedSourceRow): void {
    const name = JSON.stringify([row.namespace, row.source_digest, row.agent_id]);
    const before = this.#purgedSources.get(name);
    // A free page may still hold an earlier purge of the source.
    if (isIntactPurge(row) && (before === undefined || before.purged_at_ms < row.purged_at_ms))
      this.#purgedSources.set(name, row);
  }

  #enterSession(row: SessionRow): void {
    if (row.namespace === purgedNamespace) this.#purged.add(row.session);
    // A free page may still hold an earlier state of the session.
    const before = this.#sessions.get(row.session);
    if (before === undefined || before.revision + before.last_seq <= row.revision + row.last_seq)
      this.#sessions.set(row.session, row);
  }

  #enterRecord(row: SalvagedRecord, place: Place): void {
    const ofSession = this.#records.get(row.session) ?? new Map<number, Place>();
    this.#records.set(row.session, ofSession);
    const before = ofSession.get(row.seq);
    const other = before === undefined ? null : this.#rowAt(before);
    if (other?.kind === "record" && worth(other.row) > worth(row)) return;
    ofSession.set(row.seq, place);
  }

  /** Returns null where a part is lost, or the checksum does not match. */
  #wholeRow(found: SalvagedRecord): RecordRow | null {
    const text = found.textPayload === null ? found.text : this.#payload(found.textPayload);
    const source = found.sourcePayload === null ? found.source : this.#payload(found.sourcePayload);
    if (text === null || (source === null && found.sourcePayload !== null)) return null;
    const crc = source === null ? crc32(text) : crc32(source, crc32(text));
    if (found.crc !== null && found.crc !== crc) return null;
    if (found.headCrc !== null && found.headCrc !== headChecksum(found.session, found)) return null;
    const { seq, id, parentId, type, tsMs, storedAtMs, bytes } = found;
    const head = { seq, id, parentId, type, side: found.side === 1, tsMs, storedAtMs, bytes, crc: found.crc };
    return { ...head, text, source, isSourceText: found.sourceForm === textForm };
  }

  #payload(number: number): KeptPayload | null {
    const place = this.#payloads.get(number);
    const found = place === undefined ? null : this.#rowAt(place);
    return found?.kind === "payload" ? found.content : null;
  }

  #isEntry(row: SessionRow, kept: KeptPayload): boolean {
    try {
      this.#context.rows.decodeEntry(placeOf(row), kept);
      return true;
    } catch (error) {
      if (hasErrorCode(error, "CODEC_FAILED")) return false;
      throw error;
    }
  }
}

/** Returns the last seq that the session is assumed to have had. */
export function believedLastSeq(row: SessionRow, lastFound: number): number {
  return row.last_seq > lastFound + mostLostAtEnd ? lastFound : Math.max(row.last_seq, lastFound);
}

/** Ranks two rows of the same record: a redacted row wins, then a whole one. */
function worth({ text, crc, textPayload, type }: SalvagedRecord): number {
  const isWhole = textPayload !== null || crc === null || crc32(text) === crc;
  const isErased = (type === "custom" || type === "compaction") && typeof text === "string" && isRedaction(text);
  return (isErased ? 2 : 0) + (isWhole ? 1 : 0);
}

function isRedaction(text: string): boolean {
  try {
    return isTombstone(JSON.parse(text));
  } catch {
    return false;
  }
}

export type SalvagedRecord = RecordContentRow & {
  readonly session: Session;
  readonly role: string | null;
  readonly toolName: string | null;
};

/** Names the table of a row, which is recognized by its columns alone, because the pages that connect rows with tables may be lost. */
type SalvagedRow =
  | { readonly kind: "session"; readonly row: SessionRow }
  | { readonly kind: "record"; readonly row: SalvagedRecord }
  | { readonly kind: "entry"; readonly session: Session; readonly entry: string | Uint8Array }
  | { readonly kind: "payload"; readonly payload: number; readonly content: string | Uint8Array }
  | { readonly kind: "purge"; readonly row: PurgedSourceRow };

/** Column kinds: t text, i integer, b bytes, c text or bytes. Upper case: may also be null. */
type ColumnKind = "t" | "i" | "b" | "c" | "T" | "I" | "C";

/** Lists the columns of a table behind its number, in the order of the schema. */
type TableColumns = readonly (readonly [name: string, kind: ColumnKind])[];

const sessionColumns: TableColumns = [
  ["namespace", "t"],
  ["agent_id", "t"],
  ["key", "t"],
  ["archived", "i"],
  ["session_id", "t"],
  ["revision", "i"],
  ["last_seq", "i"],
  ["head_id", "T"],
  ["window_seq", "I"],
  ["fence", "i"],
  ["turn", "T"],
  ["message_count", "i"],
  ["created_at_ms", "i"],
  ["updated_at_ms", "i"],
  ["updated_slot", "i"],
  ["ids_to_seq", "i"],
  ["keyed_next", "i"],
  ["keyed_rows", "i"],
  ["keyed_sweep_at", "i"],
  ["keyed_horizon_ms", "i"],
  ["origin", "I"],
  ["origin_seq", "I"],
  ["source_digest", "T"],
  ["crc", "I"],
];

const purgeColumns: TableColumns = [
  ["namespace", "t"],
  ["agent_id", "t"],
  ["source_digest", "t"],
  ["purged_at_ms", "i"],
  ["crc", "i"],
];

const recordColumns: TableColumns = [
  ["session", "i"],
  ["seq", "i"],
  ["id", "t"],
  ["parentId", "T"],
  ["type", "t"],
  ["side", "i"],
  ["tsMs", "I"],
  ["storedAtMs", "I"],
  ["bytes", "i"],
  ["crc", "I"],
  ["role", "T"],
  ["toolName", "T"],
  ["text", "c"],
  ["sourceForm", "I"],
  ["source", "C"],
  ["textPayload", "I"],
  ["sourcePayload", "I"],
  ["headCrc", "I"],
];

/** Returns null for a row of another table, and for one that no table of a store can have. */
function salvagedRow({ rowid, values }: TableRow): SalvagedRow | null {
  // SQLite stores the integer primary key as the rowid, and null in its column.
  const [number, ...columns] = values;
  if (number !== null || rowid < 1) return null;
  const session = named(sessionColumns, columns);
  if (session !== null) {
    const row = { ...session, session: rowid } as SessionRow;
    return row.last_seq >= 0 && row.session_id !== "" ? { kind: "session", row } : null;
  }
  const record = named(recordColumns, columns);
  if (record !== null) {
    // `named` has checked the kind of each column.
    const row = record as unknown as SalvagedRecord;
    return row.session > 0 && row.seq > 0 && row.id !== "" ? { kind: "record", row } : null;
  }
  const purge = named(purgeColumns, columns);
  // `named` has checked the kind of each column.
  if (purge !== null) return { kind: "purge", row: purge as unknown as PurgedSourceRow };
  const [first, second] = columns;
  const isPair = columns.length === 2;
  if (isPair && isKind(first, "c") && isKind(second, "I")) return { kind: "entry", session: rowid, entry: first };
  const isPayload = isPair && first instanceof Uint8Array && first.length === 32 && isKind(second, "c");
  return isPayload ? { kind: "payload", payload: rowid, content: second } : null;
}

function named(table: TableColumns, values: readonly CellValue[]): Readonly<Record<string, CellValue>> | null {
  if (table.length !== values.length) return null;
  const row: Record<string, CellValue> = {};
  for (const [index, [name, kind]] of table.entries()) {
    const value = values[index] ?? null;
    if (!isKind(value, kind)) return null;
    row[name] = value;
  }
  return row;
}

function isKind(value: CellValue | undefined, kind: ColumnKind): value is string | Uint8Array {
  if (value === undefined) return false;
  if (kind === "T" || kind === "I" || kind === "C") {
    if (value === null) return true;
    return isKind(value, kind.toLowerCase() as ColumnKind);
  }
  if (kind === "t") return typeof value === "string";
  if (kind === "i") return typeof value === "number" && Number.isInteger(value);
  return typeof value === "string" || value instanceof Uint8Array;
}
