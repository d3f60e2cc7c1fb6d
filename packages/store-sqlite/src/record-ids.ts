import { quote, refused } from "@throughline/core/internal";
import { spansOf } from "./session-spans.ts";
import { storeSession } from "./session-rows.ts";
import type { SessionRow } from "./rows.ts";
import type { Statements } from "./statements.ts";

/** One transaction enters at most this many rows. A long session needs several, so that others can write in between. */
const catchUpRows = 5000;

/** States how far the index of ids lags behind a session, or behind a session that it shares records with. */
interface Backlog {
  readonly owner: SessionRow;
  readonly toSeq: number;
}

function backlogOf(statements: Statements, session: SessionRow): Backlog[] {
  return spansOf(statements, session)
    .map(({ owner, toSeq }) => ({ owner, toSeq: Math.min(toSeq, owner.last_seq) }))
    .filter(({ owner, toSeq }) => owner.ids_to_seq < toSeq);
}

/** Returns true when there is more to enter than one transaction should. */
export function isFarBehind(statements: Statements, session: SessionRow): boolean {
  return backlogOf(statements, session).some(({ owner, toSeq }) => toSeq - owner.ids_to_seq > catchUpRows);
}

/**
 * Enters one slice of a long backlog. Returns true when the rest does not fit into the append or the redaction itself.
 */
export function catchUpSlice(statements: Statements, session: SessionRow): boolean {
  const behind = backlogOf(statements, session).find(({ owner, toSeq }) => toSeq - owner.ids_to_seq > catchUpRows);
  if (behind === undefined) return false;
  enterIds(statements, behind.owner, behind.owner.ids_to_seq + catchUpRows);
  return true;
}

/**
 * Returns a look-up of ids in a session and in the sessions that it shares records with. It first enters the records
 * that were appended without a look-up.
 */
export function idFinder(
  statements: Statements,
  session: SessionRow,
): (id: string) => { readonly owner: SessionRow; readonly seq: number } | undefined {
  for (const { owner, toSeq } of backlogOf(statements, session)) enterIds(statements, owner, toSeq);
  const spans = spansOf(statements, session);
  return (id) => {
    for (const { owner, toSeq } of spans) {
      const found = statements.findId.get(owner.session, id);
      if (found !== undefined && found.seq <= toSeq) return { owner, seq: found.seq };
    }
    return undefined;
  };
}

/** Enters the ids of records that were just appended. @throws {ThroughlineError} RECORD_ID_TAKEN */
export function enterNewIds(
  statements: Statements,
  { session }: SessionRow,
  records: readonly { readonly seq: number; readonly id: string }[],
): void {
  for (const { id, seq } of records) {
    if (statements.insertId.run(session, id, seq).changes === 0)
      throw refused("RECORD_ID_TAKEN", `The session holds a record ${quote(id)}.`, { id });
  }
}

function enterIds(statements: Statements, owner: SessionRow, toSeq: number): void {
  statements.catchUpIds.run(owner.session, owner.ids_to_seq, toSeq);
  storeSession(statements, { ...owner, ids_to_seq: toSeq });
}
