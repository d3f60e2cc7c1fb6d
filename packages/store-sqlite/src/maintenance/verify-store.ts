import { createFinding, isErasedPayload } from "@throughline/core/internal";
import { hasErrorCode } from "@throughline/core";
import type { FilesFacet, Finding } from "@throughline/core";
import type { FindingPlace } from "@throughline/core/internal";
import { checkDatabase, checkPages } from "../check-pages.ts";
import { schemaDamage } from "../check-schema.ts";
import { behindBackup } from "./compare-backup.ts";
import type { Connection, SqliteDriver } from "../connection.ts";
import { lostLogFinding } from "../lost-log.ts";
import { inOneSnapshot } from "../one-snapshot.ts";
import { recordOf, rowOf } from "../record-rows.ts";
import { purgedSources } from "../purged-sources.ts";
import { contentChecksum, isIntactPurge } from "../row-checksums.ts";
import { placeOf } from "../rows.ts";
import { stateOf, storedEntry } from "../session-rows.ts";
import { verifyFiles } from "./verify-files.ts";
import { sessionNumbers } from "./session-numbers.ts";
import { isDamage } from "../sqlite-errors.ts";
import type { Session, SessionRow } from "../rows.ts";
import type { StoreContext } from "../store-context.ts";
import { fileSystemOf } from "../file-system.ts";
import { damagedLogEnding, keptBeside, lostLogEnding } from "../store-file.ts";
import type { StoreHandle } from "../store-handle.ts";

export interface VerifyOptions {
  readonly full?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  /**
   * Sets whether a full check compares the store with its newest backup. A repair cannot copy what only the backup has.
   * @default true
   */
  readonly withBackup?: boolean;
}

const sliceRows = 200;

/**
 * Checks the store without changing it. The quick check covers the schema, and of every session its row, its entry, its
 * origin and the number of its records, and the purged sources. The full check adds the pages and indexes, the checksum and the JSON of every
 * record, whether its parent finds it, and every entry. Damage to one session does not hide the others.
 */
export async function* verifyStore(
  handle: StoreHandle,
  { driver, files }: { readonly driver: SqliteDriver; readonly files: FilesFacet },
  { full = false, signal, withBackup = true }: VerifyOptions,
): AsyncGenerator<Finding> {
  const { context } = handle;
  const remote = fileSystemOf(context.path);
  if (remote !== null)
    yield createFinding("FILE_SYSTEM_REMOTE", `The store lies on ${remote}.`, { path: context.path });
  for (const log of keptBeside(context.path, damagedLogEnding)) {
    const message = `What lay behind the damage in a log of ${context.path} was lost; it is kept as ${log}.`;
    yield createFinding("LOG_DAMAGED", message, { path: log });
  }
  for (const kept of keptBeside(context.path, lostLogEnding)) yield lostLogFinding(context.path, kept);
  const damage = await handle.read(({ database }) => schemaDamage(database), signal);
  if (damage !== null)
    yield createFinding("STORE_DAMAGED", `${context.path} is damaged. ${damage}`, { path: context.path });
  if (full) yield* await pageFindings(handle, driver, signal);
  if (full && withBackup) yield* behindBackup(handle, driver, signal);
  for await (const { sessions, damage } of sessionNumbers(handle, signal)) {
    for (const session of sessions) yield* verifySession(handle, session, { full, signal });
    if (damage === null) continue;
    const message = `The list of the sessions of ${context.path} cannot be read whole. ${String(damage)}`;
    yield createFinding("STORE_DAMAGED", message, { path: context.path });
  }
  yield* await checked({ path: context.path }, () => purgeFindings(handle, signal));
  yield* verifyFiles(handle, files, { full, signal });
}

async function purgeFindings(handle: StoreHandle, signal?: AbortSignal): Promise<Finding[]> {
  const { path } = handle.context;
  let damaged = 0;
  for await (const rows of purgedSources(handle, signal)) damaged += rows.filter((row) => !isIntactPurge(row)).length;
  if (damaged === 0) return [];
  const message = `${path} is damaged: ${damaged} of the marks that keep purged sessions from a repeated import cannot be read.`;
  return [createFinding("STORE_DAMAGED", message, { path })];
}

async function pageFindings(handle: StoreHandle, driver: SqliteDriver, signal?: AbortSignal): Promise<Finding[]> {
  const { path } = handle.context;
  const asked = { mostAnswers: 20, references: true };
  // Opening the store first gives a clearer error for a damaged store. A copy has no file that could be opened again.
  const ofCopy = await handle.read(({ isCopy, database }) => (isCopy ? checkDatabase(database, asked) : null), signal);
  const wrong = ofCopy ?? (await checkPages({ path, ...asked }, driver, signal));
  return wrong.map((text) => createFinding("STORE_DAMAGED", `${path}: ${text}`, { path }));
}

async function* verifySession(
  handle: StoreHandle,
  number: Session,
  { full, signal }: { readonly full: boolean; readonly signal: AbortSignal | undefined },
): AsyncGenerator<Finding> {
  const { context } = handle;
  const session = await handle.read(({ statements }) => statements.rawSession.get(number), signal);
  // The session may be purged between any two reads.
  if (session === undefined) return;
  const place = { path: context.path, key: session.key };
  const look = (findings: (connection: Connection, session: SessionRow) => Finding[]): Promise<Finding[]> =>
    checked(place, () => handle.read((connection) => lookedAt(connection, number, findings), signal));
  yield* await look((connection, current) => rowFindings(context, connection, current, full));
  if (!full) return;
  for (let after = session.origin_seq ?? 0; after < session.last_seq; after += sliceRows) {
    const from = after;
    yield* await look((connection, current) => recordFindings(context, connection, current, from));
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Looks at the current state of a session in one snapshot, because others write and purge in between. */
function lookedAt(
  connection: Connection,
  number: Session,
  findings: (connection: Connection, session: SessionRow) => Finding[],
): Finding[] {
  return inOneSnapshot(connection, () => {
    const session = connection.statements.findSession.get(number);
    return session === undefined ? [] : findings(connection, session);
  });
}

/** Returns damage as findings, and throws every other error. */
async function checked(place: FindingPlace, look: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await look();
  } catch (error) {
    if (!hasErrorCode(error, "STORE_CORRUPT", "CODEC_FAILED")) throw error;
    return [createFinding("STORE_DAMAGED", error.message, place)];
  }
}

function rowFindings(
  context: StoreContext,
  { database, statements }: Connection,
  session: SessionRow,
  full: boolean,
): Finding[] {
  const place = { path: context.path, key: session.key };
  const findings: Finding[] = [];
  if (session.origin !== null && statements.findSession.get(session.origin) === undefined)
    findings.push(createFinding("RECORD_MISSING", `The session that ${session.key} was forked from is gone.`, place));
  const expected = session.last_seq - (session.origin_seq ?? 0);
  const count = database
    .prepare<[number, number], number>("SELECT count(*) FROM store_records WHERE session = ? AND seq <= ?")
    .pluck()
    .get(session.session, session.last_seq);
  if (count !== undefined && count < expected)
    findings.push(createFinding("RECORD_MISSING", `${session.key} has ${count} of its ${expected} records.`, place));
  const entry = storedEntry(statements, session);
  if (full) stateOf(context.rows, session, entry);
  return findings;
}

/** Counts entered records that their parent does not find. Surplus rows of the table are never shown. */
function lostChildren(database: Connection["database"], session: Session, afterSeq: number): number {
  const count = database
    .prepare<[Session, number, number], number>(
      `SELECT count(*) FROM store_children_state t CROSS JOIN store_records r
       WHERE r.session = ? AND r.seq > ? AND r.seq <= ? AND r.parent_id IS NOT NULL AND r.record <= t.entered_to
       AND NOT EXISTS (SELECT 1 FROM store_children c
         WHERE c.session = r.session AND c.parent_id = r.parent_id AND c.seq = r.seq)`,
    )
    .pluck();
  return count.get(session, afterSeq, afterSeq + sliceRows) ?? 0;
}

function recordFindings(
  context: StoreContext,
  { database, statements }: Connection,
  session: SessionRow,
  afterSeq: number,
): Finding[] {
  const findings: Finding[] = [];
  const place = placeOf(session);
  const lost = lostChildren(database, session.session, afterSeq);
  if (lost > 0) {
    const message = `${lost} records of ${session.key} behind seq ${afterSeq} are not found by their parent; rebuild the search index.`;
    findings.push(createFinding("STORE_DAMAGED", message, { path: context.path, key: session.key }));
  }
  for (const found of statements.readRecords.ascending.all(
    session.session,
    afterSeq,
    afterSeq + sliceRows + 1,
    sliceRows,
  )) {
    const at = { path: context.path, key: session.key, recordId: found.id };
    const say = (code: "CHECKSUM_MISMATCH" | "STORE_DAMAGED", why: string): number =>
      findings.push(createFinding(code, `Record ${found.seq} of ${session.key} ${why}.`, at));
    try {
      const row = rowOf(statements, session.session, found);
      if (row.crc !== null && contentChecksum(row.text, row.source) !== row.crc) {
        say("CHECKSUM_MISMATCH", "does not match its checksum");
        continue;
      }
      const { record } = recordOf(context.rows, place, row, "source");
      if (record.id !== row.id || record.type !== row.type || record.parentId !== row.parentId)
        say("STORE_DAMAGED", "says another id, type or parent than its row");
    } catch (error) {
      if (isErasedPayload(error)) continue;
      if (!hasErrorCode(error, "STORE_CORRUPT", "CODEC_FAILED") && !isDamage(error)) throw error;
      say("STORE_DAMAGED", "cannot be read");
    }
  }
  return findings;
}
