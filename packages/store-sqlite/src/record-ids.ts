import { storeSession } from "./session-rows.ts";
import type { SessionRow, Statements } from "./statements.ts";

/** So many rows are entered in one transaction; a long session is caught up in several, so that others get their turn. */
export const catchUpRows = 5000;

/** Enters the ids of the records that were appended without a look-up. The caller writes `ids_to_seq`. */
export function catchUpIds(
  statements: Statements,
  { session, ids_to_seq: fromSeq, last_seq: toSeq }: SessionRow,
): void {
  if (fromSeq < toSeq) statements.catchUpIds.run(session, fromSeq, toSeq);
}

/** One slice of a long catching up; true when there is more to do than fits into the append or redaction itself. */
export function catchUpSlice(statements: Statements, session: SessionRow): boolean {
  const { ids_to_seq: fromSeq, last_seq: lastSeq } = session;
  if (lastSeq - fromSeq <= catchUpRows) return false;
  statements.catchUpIds.run(session.session, fromSeq, fromSeq + catchUpRows);
  storeSession(statements, { ...session, ids_to_seq: fromSeq + catchUpRows });
  return true;
}
