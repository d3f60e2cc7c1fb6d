import type { Connection } from "./open-connection.ts";
import { isDamage } from "./sqlite-errors.ts";
import type { StoreHandle } from "./store-handle.ts";
import type { Session } from "./statements.ts";

/** How many rows are read at a time. */
const sliceRows = 5000;

/** The number of a record's row, by session and seq. */
export type RecordPlaces = ReadonlyMap<Session, ReadonlyMap<number, number>>;

interface Place {
  readonly record: number;
  readonly session: Session;
  readonly seq: number;
}

/**
 * Where the records of a damaged store stand, found by going through their table: their index may be what is damaged.
 * From the beginning up to the first damaged page, then from the end back to the last. It holds two numbers for each
 * record of the store, so it is asked for only where the index has failed.
 */
export async function recordPlaces(handle: StoreHandle, signal: AbortSignal | undefined): Promise<RecordPlaces> {
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
