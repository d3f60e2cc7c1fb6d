import type { Connection } from "../connection.ts";
import { inOneSnapshot } from "../one-snapshot.ts";
import { recordOf, rowOf } from "../record-rows.ts";
import type { CodedRecord } from "../record-rows.ts";
import { placeOf } from "../rows.ts";
import { isDamage } from "../sqlite-errors.ts";
import type { RecordContentRow, Session, SessionRow } from "../rows.ts";
import type { StoreHandle } from "../store-handle.ts";
import { readable } from "./readable.ts";

type WholeRow = RecordContentRow & {
  readonly session: Session;
  readonly role: string | null;
  readonly toolName: string | null;
};

const wholeRow = `SELECT record, head_crc AS headCrc, session, seq, id, parent_id AS parentId, type, side, ts_ms AS tsMs, stored_at_ms AS storedAtMs, bytes, crc,
  role, tool_name AS toolName, text, source_form AS sourceForm, source, text_payload AS textPayload,
  source_payload AS sourcePayload FROM store_records NOT INDEXED WHERE record = ?`;

/** Finds records by their index. Once the index has failed to find a record, it goes through the table. */
export class RecordReader {
  readonly #handle: StoreHandle;
  readonly #signal: AbortSignal | undefined;
  #places: RecordPlaces | null = null;

  constructor(handle: StoreHandle, signal: AbortSignal | undefined) {
    this.#handle = handle;
    this.#signal = signal;
  }

  /** Returns the record, or undefined where it is damaged. */
  async read(session: SessionRow, seq: number): Promise<CodedRecord | undefined> {
    const byIndex = await readable(() =>
      this.#handle.read(({ database }) => recordAt(database, session.session, seq), this.#signal),
    );
    const found = byIndex === undefined ? undefined : await this.#coded(session, seq, byIndex);
    if (found !== undefined) return found;
    this.#places ??= await recordPlaces(this.#handle, this.#signal);
    const place = this.#places.get(session.session)?.get(seq);
    return place === undefined || place === byIndex ? undefined : this.#coded(session, seq, place);
  }

  #coded(session: SessionRow, seq: number, record: number): Promise<CodedRecord | undefined> {
    return readable(() =>
      this.#handle.read(
        (connection) => inOneSnapshot(connection, () => this.#wholeRecord(connection, session, { seq, record })),
        this.#signal,
      ),
    );
  }

  #wholeRecord(
    { database, statements }: Connection,
    session: SessionRow,
    { seq, record }: { readonly seq: number; readonly record: number },
  ): CodedRecord | undefined {
    const found = database.prepare<[number], WholeRow>(wholeRow).get(record);
    // A damaged index may lead to another record.
    if (found?.session !== session.session || found.seq !== seq) return undefined;
    const row = rowOf(statements, session.session, found);
    // A record that cannot be decoded counts as lost.
    recordOf(this.#handle.context.rows, placeOf(session), row, "source");
    return { row, role: found.role, toolName: found.toolName };
  }
}

function recordAt(database: Connection["database"], session: Session, seq: number): number | undefined {
  const find = database.prepare<[Session, number], number>(
    "SELECT record FROM store_records WHERE session = ? AND seq = ?",
  );
  return find.pluck().get(session, seq);
}

const sliceRows = 5000;

/** Maps session and seq to the number of the record's row. */
type RecordPlaces = ReadonlyMap<Session, ReadonlyMap<number, number>>;

interface Place {
  readonly record: number;
  readonly session: Session;
  readonly seq: number;
}

/**
 * Finds the rows of a damaged store by going through their table, because their index may be damaged. It reads from the
 * beginning to the first damaged page, then from the end back to the last one. It holds two numbers for each record of
 * the store, so it runs only where the index has failed.
 */
async function recordPlaces(handle: StoreHandle, signal: AbortSignal | undefined): Promise<RecordPlaces> {
  const places = new Map<Session, Map<number, number>>();
  const enter = ({ record, session, seq }: Place): void => {
    const ofSession = places.get(session) ?? new Map<number, number>();
    places.set(session, ofSession.set(seq, record));
  };
  let [first, last] = [0, Number.MAX_SAFE_INTEGER];
  for (const order of ["ASC", "DESC"] as const) {
    for (;;) {
      const [after, before] = [first, last];
      const slice = await handle.read(({ database }) => sliceOf(database, after, before, order), signal);
      slice.rows.forEach(enter);
      const end = slice.rows.at(-1)?.record;
      if (end !== undefined && order === "ASC") first = end;
      if (end !== undefined && order === "DESC") last = end;
      if (slice.isDamaged) break;
      if (end === undefined) return places;
    }
  }
  return places;
}

function sliceOf(
  database: Connection["database"],
  after: number,
  before: number,
  order: "ASC" | "DESC",
): { readonly rows: readonly Place[]; readonly isDamaged: boolean } {
  const sql = `SELECT record, session, seq FROM store_records NOT INDEXED WHERE record > ? AND record < ? ORDER BY record ${order} LIMIT ${sliceRows}`;
  const rows: Place[] = [];
  try {
    for (const row of database.prepare<[number, number], Place>(sql).iterate(after, before)) rows.push(row);
    return { rows, isDamaged: false };
  } catch (error) {
    if (!isDamage(error)) throw error;
    return { rows, isDamaged: true };
  }
}
