import { hasErrorCode } from "@throughline/core";
import type Database from "better-sqlite3";
import { rowOf } from "./record-rows.ts";
import { schemaDamage } from "./check-schema.ts";
import { assertContent, checkedEntry, checkedPurge, checkedSession } from "./row-checksums.ts";
import { purgedNamespace } from "./rows.ts";
import type { EntryRow, RecordContentRow, Session, SessionRow } from "./rows.ts";
import type { Statements } from "./statements.ts";
import { prepareStatements } from "./statements.ts";

const sliceRows = 100;

type Listed = SessionRow & { readonly entry: EntryRow["entry"] | null; readonly entryCrc: number | null };
type Numbered = RecordContentRow & { readonly record: number; readonly session: Session };

const sessionRows = `SELECT s.*, e.entry, e.crc AS entryCrc FROM store_sessions s
  LEFT JOIN store_entries e ON e.session = s.session WHERE s.session > ? ORDER BY s.session LIMIT ${sliceRows}`;

const recordRows = `SELECT session, record, head_crc AS headCrc, seq, id, parent_id AS parentId, type, side, ts_ms AS tsMs,
  stored_at_ms AS storedAtMs, bytes, crc, role, tool_name AS toolName, text, source_form AS sourceForm, source,
  text_payload AS textPayload, source_payload AS sourcePayload
  FROM store_records NOT INDEXED WHERE record > ? ORDER BY record LIMIT ${sliceRows}`;

const missingRecords = `SELECT s.key FROM store_sessions s WHERE s.namespace <> '${purgedNamespace}'
  AND s.last_seq - coalesce(s.origin_seq, 0) <> (SELECT count(*) FROM store_records r
    WHERE r.session = s.session AND r.seq > coalesce(s.origin_seq, 0) AND r.seq <= s.last_seq) LIMIT 1`;

/**
 * Compares every row of a database with its checksum, and counts the records of each session. Yields null after each
 * slice, and returns the damage or null. No codec is needed, because checksums cover the stored bytes.
 */
export function* checkRows(database: Database.Database): Generator<null, string | null> {
  const damage = schemaDamage(database);
  if (damage !== null) return damage;
  const statements = prepareStatements(database);
  try {
    const sessions = database.prepare<[number], Listed>(sessionRows);
    for (let rows = sessions.all(0); rows.length > 0; rows = sessions.all(rows.at(-1)?.session ?? 0)) {
      for (const row of rows) checkSession(row);
      yield null;
    }
    const records = database.prepare<[number], Numbered>(recordRows);
    for (let rows = records.all(0); rows.length > 0; rows = records.all(rows.at(-1)?.record ?? 0)) {
      for (const row of rows) checkRecord(statements, row);
      yield null;
    }
    const { nextPurges } = statements;
    for (let rows = nextPurges.all(0, sliceRows); rows.length > 0;) {
      rows.forEach(checkedPurge);
      yield null;
      rows = nextPurges.all(rows.at(-1)?.purge ?? 0, sliceRows);
    }
    const key = database.prepare<[], string>(missingRecords).pluck().get();
    return key === undefined ? null : `Records of ${key} are missing.`;
  } catch (error) {
    if (hasErrorCode(error, "STORE_CORRUPT")) return error.message;
    throw error;
  }
}

function checkSession({ entry, entryCrc, ...row }: Listed): void {
  checkedSession(row);
  if (entry !== null) checkedEntry(row, { entry, crc: entryCrc });
}

function checkRecord(statements: Statements, { session, ...found }: Numbered): void {
  const row = rowOf(statements, session, found);
  assertContent(row, row.text, row.source);
}
