import type { CellValue, TableRow } from "./table-cells.ts";
import type { RecordContentRow, Session, SessionRow } from "./statements.ts";

/** A record as its row has it. */
export type SalvagedRecord = RecordContentRow & {
  readonly session: Session;
  readonly role: string | null;
  readonly toolName: string | null;
};

/** What a row of a table of ours is, told by its columns alone: what says which page belongs to which table may be lost. */
export type SalvagedRow =
  | { readonly kind: "session"; readonly row: SessionRow }
  | { readonly kind: "record"; readonly row: SalvagedRecord }
  | { readonly kind: "entry"; readonly session: Session; readonly entry: string | Uint8Array }
  | { readonly kind: "payload"; readonly payload: number; readonly content: string | Uint8Array };

/** Of a column: text, a whole number, bytes, any of text and bytes; in upper case, or null. */
type ColumnKind = "t" | "i" | "b" | "c" | "T" | "I" | "C";

/** The columns of a table behind its number, in the order in which the schema has them. */
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
];

/** Rows of the first version of the schema end before the columns that were added later. */
const addedColumns = 2;

/** Null for a row of another table, and for one that no table of ours can have. */
export function salvagedRow({ rowid, values }: TableRow): SalvagedRow | null {
  // The number of a row stands beside it, and null in its place.
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
  const [first, second] = columns;
  if (columns.length === 1 && isKind(first, "c")) return { kind: "entry", session: rowid, entry: first };
  const isPayload = columns.length === 2 && first instanceof Uint8Array && first.length === 32 && isKind(second, "c");
  return isPayload ? { kind: "payload", payload: rowid, content: second } : null;
}

function named(table: TableColumns, values: readonly CellValue[]): Readonly<Record<string, CellValue>> | null {
  if (values.length !== table.length && values.length !== table.length - addedColumns) return null;
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
