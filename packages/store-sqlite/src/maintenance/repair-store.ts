import { createFinding, refused, serializeRecord, throughlineDraft } from "@throughline/core/internal";
import { hasErrorCode } from "@throughline/core";
import type { FilesFacet, Finding } from "@throughline/core";
import { leaveLog } from "../backup-store.ts";
import { checkDatabase } from "../check-pages.ts";
import type { Connection, OpenOptions } from "../connection.ts";
import { openConnection } from "../open-connection.ts";
import { shareReferences } from "../file-references.ts";
import { insertRecord } from "../record-rows.ts";
import type { CodedRecord } from "../record-rows.ts";
import { copyFiles, copyReferences } from "./copy-files.ts";
import { isReadable, recreatedRow, renamedRow, RepairSource, statedSource } from "./repair-source.ts";
import { isIntactPurge } from "../row-checksums.ts";
import { believedLastSeq } from "./salvage.ts";
import { placeOf } from "../rows.ts";
import { sealSession, storeEntry } from "../session-rows.ts";
import { nativeCode } from "../sqlite-errors.ts";
import type { PurgedSourceRow, SessionRow } from "../rows.ts";
import { databasePath } from "../file-facts.ts";
import { isThere, putInPlace, removeDatabase } from "../store-file.ts";
import type { StoreHandle } from "../store-handle.ts";
import { verifyStore } from "./verify-store.ts";

/** One transaction copies at most this many records. */
const sliceRows = 200;

/** Holds how the copy is opened, and the files of the damaged store. */
interface RepairOptions extends OpenOptions {
  readonly files: FilesFacet;
}

interface Recovery {
  sessions: number;
  recovered: number;
  lost: number;
  /** False when rows of sessions are lost, because those rows state how many records there were. */
  isTotalKnown: boolean;
}

/**
 * Writes what can be read of a damaged store to a new file beside it, and leaves the store as it is. Where SQLite does
 * not read the file, or a page of it, the pages are read one by one. A note replaces each record that cannot be read,
 * so that seq stays dense. There is no copy without damage, and none where nothing can be read. The copy is checked
 * before it gets its name.
 */
export async function* repairStore(
  handle: StoreHandle,
  options: RepairOptions,
  signal: AbortSignal | undefined,
): AsyncGenerator<Finding> {
  if (!(yield* damageOf(handle, options, signal))) return;
  const { path, clock } = handle.context;
  const source = await RepairSource.of(handle, await isReadable(handle, signal), signal);
  const target = freeName(`${path}.repaired-${new Date(clock.nowMs()).toISOString().replaceAll(/[:.]/g, "-")}`);
  const part = `${target}.part`;
  const recovery: Recovery = { sessions: 0, recovered: 0, lost: 0, isTotalKnown: true };
  try {
    removeDatabase(part);
    yield* writeCopy(
      handle,
      { ...options, path: part, create: true, recover: false },
      { source, target, signal },
      recovery,
    );
    const isAnything = recovery.recovered > 0 || (recovery.lost === 0 && recovery.sessions > 0);
    if (!isAnything) {
      yield createFinding("STORE_DAMAGED", `No record of ${path} could be read; nothing was written.`, { path });
      return;
    }
    leaveLog(part, options.driver);
    putInPlace(part, target);
  } finally {
    removeDatabase(part);
  }
  yield createFinding("STORE_DAMAGED", `${recoveredText(recovery)} recovered into ${target}.`, {
    path: target,
    repaired: true,
  });
}

/** Yields the damage of the store. Returns whether a copy repairs any of it. */
async function* damageOf(
  handle: StoreHandle,
  parts: RepairOptions,
  signal: AbortSignal | undefined,
): AsyncGenerator<Finding, boolean> {
  let isDamaged = false;
  try {
    for await (const finding of verifyStore(handle, parts, {
      full: true,
      withBackup: false,
      ...(signal === undefined ? {} : { signal }),
    })) {
      // The commits of a damaged or deleted log are in no record, so a copy cannot repair that damage.
      isDamaged ||= finding.severity === "error" && !logCodes.has(finding.code);
      yield finding;
    }
    return isDamaged;
  } catch (error) {
    if (!hasErrorCode(error, "STORE_CORRUPT")) throw error;
    yield createFinding("STORE_DAMAGED", error.message, { path: handle.context.path });
    return true;
  }
}

const logCodes: ReadonlySet<string> = new Set(["LOG_DAMAGED", "LOG_MISSING"]);

interface CopyContext {
  readonly source: RepairSource;
  readonly target: string;
  readonly signal: AbortSignal | undefined;
}

async function* writeCopy(
  handle: StoreHandle,
  options: OpenOptions,
  context: CopyContext,
  recovery: Recovery,
): AsyncGenerator<Finding> {
  const copy = openConnection(options);
  try {
    for await (const { session, row } of context.source.sessions()) {
      recovery.sessions += 1;
      recovery.isTotalKnown &&= row !== null;
      const known = row ?? recreatedRow(session, context.source.salvage, handle.context);
      yield* copySession(handle, copy, known, { ...context, isRecreated: row === null }, recovery);
    }
    for await (const rows of context.source.purgedSources()) copyPurges(copy, rows);
    yield* copyFiles(handle, copy, context.signal);
    copy.database.pragma("wal_checkpoint(TRUNCATE)");
    const [wrong] = checkDatabase(copy.database, { mostAnswers: 1, references: true });
    if (wrong !== undefined)
      throw refused("INTERNAL", `The repaired copy is not whole: ${wrong}`, { path: options.path });
  } finally {
    copy.database.close();
  }
}

function copyPurges({ statements }: Connection, rows: readonly PurgedSourceRow[]): void {
  statements.begin.run();
  for (const { namespace, agent_id, source_digest, purged_at_ms, crc } of rows.filter(isIntactPurge))
    statements.notePurge.run({ namespace, agent_id, source_digest, purged_at_ms, crc });
  statements.commit.run();
}

async function* copySession(
  handle: StoreHandle,
  copy: Connection,
  found: SessionRow,
  { source, target, signal, isRecreated }: CopyContext & { readonly isRecreated: boolean },
  recovery: Recovery,
): AsyncGenerator<Finding> {
  const { context } = handle;
  const firstSeq = (found.origin_seq ?? 0) + 1;
  const lastSeq = believedLastSeq(found, source.salvage.lastSeq(found.session));
  const entry = isRecreated ? undefined : await source.entry(found);
  copy.statements.begin.run();
  const session = insertSession(copy, { ...found, last_seq: lastSeq });
  const place = { path: target, key: session.key, repaired: true };
  const isKept = entry !== undefined && session.key === found.key;
  storeEntry(
    copy.statements,
    session.session,
    isKept ? entry : context.rows.encodeEntry(placeOf(session), { sessionId: session.session_id }),
  );
  // The row may be damaged, so the source is read from the entry.
  copy.statements.setSource.run(isKept ? statedSource(context.rows, found, entry) : null, session.session);
  sealSession(copy.statements, session.session);
  if (found.origin !== null) shareReferences(copy, found.origin, session.session, found.origin_seq ?? 0);
  copy.statements.commit.run();
  if (isRecreated) {
    const message = `The row of session ${session.session} was lost; its records are in ${session.key}.`;
    yield createFinding("ENTRY_UNREADABLE", message, place);
  } else if (entry === undefined)
    yield createFinding("ENTRY_UNREADABLE", `The entry of ${session.key} was lost.`, place);
  const lost = new LostRanges();
  let lastMainId: string | null = null;
  let isHeadFound = session.head_id === null;
  for (let seq = firstSeq; seq <= lastSeq; seq += sliceRows) {
    handle.life.begin(signal);
    copy.statements.begin.run();
    for (let each = seq; each < seq + sliceRows && each <= lastSeq; each++) {
      // Under a codec the row is bound to its original session, which `found` is.
      const coded = await source.record(found, each);
      insertRecord(copy.statements, session.session, coded ?? lostRecord(handle, session, each));
      if (coded === undefined) lost.add(each);
      else {
        recovery.recovered += 1;
        copyReferences(context, copy, found, coded.row);
        isHeadFound ||= coded.row.id === session.head_id;
        if (!coded.row.side) lastMainId = coded.row.id;
      }
    }
    copy.statements.commit.run();
  }
  recovery.lost += lost.count;
  // The head of a fork may be one of the records that it shares.
  if (!isHeadFound && (session.origin === null || lastMainId !== null))
    copy.database.prepare("UPDATE store_sessions SET head_id = ? WHERE session = ?").run(lastMainId, session.session);
  sealSession(copy.statements, session.session);
  for (const range of lost.ranges) yield lostFinding(session, range, place);
}

/** Collects ranges of seqs without a record. */
class LostRanges {
  readonly ranges: { readonly from: number; to: number }[] = [];
  count = 0;

  add(seq: number): void {
    this.count += 1;
    const last = this.ranges.at(-1);
    if (last !== undefined && last.to === seq - 1) last.to = seq;
    else this.ranges.push({ from: seq, to: seq });
  }
}

function lostFinding(
  { key }: SessionRow,
  { from, to }: { readonly from: number; readonly to: number },
  place: { readonly path: string; readonly key: string; readonly repaired: boolean },
): Finding {
  const message =
    from === to
      ? `Record ${from} of ${key} could not be read; a note stands in its place.`
      : `Records ${from} to ${to} of ${key} could not be read; notes stand in their place.`;
  return createFinding("RECORD_MISSING", message, place);
}

/**
 * Writes the row of a session into the copy. It changes the key when another row has the same one, because a row may be
 * found twice.
 */
function insertSession(copy: Connection, found: SessionRow): SessionRow {
  const row: SessionRow = {
    ...found,
    // The ids are entered again at the next look-up of an id.
    ids_to_seq: found.origin_seq ?? 0,
    // Keyed appends are not copied. A repeated one is refused as too old, so it is not appended twice.
    keyed_rows: 0,
    keyed_horizon_ms: Math.max(found.keyed_horizon_ms, found.updated_at_ms),
  };
  const columns = Object.keys(row);
  const insert = copy.database.prepare(
    `INSERT INTO store_sessions (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`,
  );
  const put = (each: SessionRow): SessionRow => {
    insert.run(...columns.map((name) => each[name as keyof SessionRow]));
    return each;
  };
  try {
    return put(row);
  } catch (error) {
    if (!nativeCode(error).startsWith("SQLITE_CONSTRAINT")) throw error;
    return put(renamedRow(row));
  }
}

/** Creates the note that replaces a lost record. It has no parent, because the id of the parent is lost too. */
function lostRecord({ context }: StoreHandle, session: SessionRow, seq: number): CodedRecord {
  const atMs = context.clock.nowMs();
  const { type, ...fields } = throughlineDraft("unparsed", { reason: "damaged", seq });
  const record = { type, id: `damaged:${seq}`, parentId: null, timestamp: new Date(atMs).toISOString(), ...fields };
  const item = {
    record,
    text: serializeRecord(record),
    side: true,
    tsMs: atMs,
    source: null,
    isSourceCanonical: false,
  };
  const row = context.rows.encodeRecord(placeOf(session), item, { seq, storedAtMs: atMs });
  return { row, role: null, toolName: null };
}

/** Returns a name that no file has. */
function freeName(wanted: string): string {
  for (let number = 1; ; number++) {
    const name = number === 1 ? wanted : `${wanted}-${number}`;
    if (!isThere(databasePath(name))) return name;
  }
}

function recoveredText({ recovered, lost, isTotalKnown }: Recovery): string {
  const number = (count: number): string => count.toLocaleString("en-US");
  const total = recovered + lost;
  return `${isTotalKnown ? `${number(recovered)} of ${number(total)}` : number(recovered)} ${total === 1 ? "record" : "records"}`;
}
