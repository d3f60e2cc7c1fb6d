import { createFinding, throughlineDraft, type Finding } from "@throughline/core";
import { serializeRecord } from "@throughline/core/store";
import { openConnection, type Connection, type OpenOptions } from "./open-connection.ts";
import { insertRecord, type CodedRecord } from "./record-rows.ts";
import { readable, RecordReader } from "./record-reader.ts";
import { placeOf } from "./session-rows.ts";
import { sessionNumbers } from "./session-numbers.ts";
import type { StoreHandle } from "./store-handle.ts";
import type { SessionRow } from "./statements.ts";
import { verifyStore } from "./verify-store.ts";

/** Records copied in one transaction. */
const sliceRows = 200;

/**
 * Writes what can be read of a damaged store to a new file beside it, and leaves the store as it is. A record that cannot
 * be read becomes a note in its place, so that seq stays dense. Without damage there is no copy.
 */
export async function* repairStore(
  handle: StoreHandle,
  options: OpenOptions,
  signal: AbortSignal | undefined,
): AsyncGenerator<Finding> {
  let isDamaged = false;
  const asked = { full: true, ...(signal === undefined ? {} : { signal }) };
  for await (const finding of verifyStore(handle, options.driver, asked)) {
    // What a damaged log held is in no record, and a copy has no more of it.
    isDamaged ||= finding.severity === "error" && finding.code !== "LOG_DAMAGED";
    yield finding;
  }
  if (!isDamaged) return;
  const { path, clock } = handle.scene;
  const target = `${path}.repaired-${new Date(clock.nowMs()).toISOString().replaceAll(/[:.]/g, "-")}`;
  const copy = openConnection({ ...options, path: target, create: true, recover: false });
  const records = new RecordReader(handle, signal);
  try {
    for await (const { sessions } of sessionNumbers(handle, signal))
      for (const number of sessions) {
        const session = await readable(() =>
          handle.read(({ statements }) => statements.findSession.get(number), signal),
        );
        if (session !== undefined) yield* copySession(handle, copy, session, records, { target, signal });
      }
    copy.database.pragma("wal_checkpoint(TRUNCATE)");
  } finally {
    copy.database.close();
  }
  yield createFinding("STORE_DAMAGED", `What could be read of ${path} is in ${target}.`, {
    path: target,
    repaired: true,
  });
}

async function* copySession(
  handle: StoreHandle,
  copy: Connection,
  session: SessionRow,
  records: RecordReader,
  { target, signal }: { readonly target: string; readonly signal: AbortSignal | undefined },
): AsyncGenerator<Finding> {
  const { scene } = handle;
  const place = { path: target, key: session.key, repaired: true };
  const entry = await readable(() =>
    handle.read(({ statements }) => statements.findEntry.get(session.session), signal),
  );
  copy.statements.begin.run();
  const columns = Object.keys(session);
  const values = columns.map((name) => session[name as keyof SessionRow]);
  copy.database
    .prepare(`INSERT INTO store_sessions (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`)
    .run(...values);
  // The ids are entered again when somebody asks for one.
  copy.database
    .prepare("UPDATE store_sessions SET ids_to_seq = ? WHERE session = ?")
    .run(session.origin_seq ?? 0, session.session);
  const kept = entry?.entry ?? scene.rows.encodeEntry(placeOf(session), { sessionId: session.session_id });
  copy.statements.writeEntry.run(session.session, kept);
  copy.statements.commit.run();
  if (entry === undefined) yield createFinding("ENTRY_UNREADABLE", `The entry of ${session.key} was lost.`, place);
  for (let seq = (session.origin_seq ?? 0) + 1; seq <= session.last_seq; seq += sliceRows) {
    handle.life.begin(signal);
    copy.statements.begin.run();
    const lost: number[] = [];
    for (let each = seq; each < seq + sliceRows && each <= session.last_seq; each++) {
      const coded = await records.read(session, each);
      if (coded === undefined) lost.push(each);
      insertRecord(copy.statements, session.session, coded ?? lostRecord(handle, session, each));
    }
    copy.statements.commit.run();
    for (const each of lost)
      yield createFinding(
        "RECORD_MISSING",
        `Record ${each} of ${session.key} could not be read; a note stands in its place.`,
        place,
      );
  }
}

/** The note that stands where a record was. It hangs on nothing: what its parent was is lost with it. */
function lostRecord({ scene }: StoreHandle, session: SessionRow, seq: number): CodedRecord {
  const atMs = scene.clock.nowMs();
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
  const row = scene.rows.encodeRecord(placeOf(session), item, { seq, storedAtMs: atMs });
  return { row, role: null, toolName: null };
}
