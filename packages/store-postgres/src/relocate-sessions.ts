import { hasErrorCode, ThroughlineError, type SessionEntry, type SessionRef } from "@throughline/core";
import {
  abortedBefore,
  assertKnownOptions,
  entrySourceDigest,
  type OptionTable,
  optionKinds,
} from "@throughline/core/internal";
import { arrayLiteral } from "./array-literal.ts";
import type { RunStatement } from "./connection-pool.ts";
import {
  asTexts,
  columnsOf,
  copyKeys,
  copyPayloads,
  copyRecords,
  differingSeqs,
  insertTexts,
  placeOf,
  placeOfAgent,
  type CopiedNumber,
  type RowPlace,
} from "./copy-rows.ts";
import { entryColumns, entryOf, refOf, type DatabaseRow } from "./row-values.ts";
import {
  assertFitting,
  dropLeftCopies,
  isTaken,
  families,
  type Family,
  newNumber,
  rangeOf,
  type Relocation,
} from "./relocation.ts";
import { movedCopyOf, withNote, withoutNote, type MovedCopy } from "./moved-copy.ts";
import { copyFilesOf, copyUnusedFiles, dropRedactedReferences } from "./relocate-files.ts";
import { copyPurges } from "./purged-sources.ts";
import { databaseNowMs } from "./store-clock.ts";
import { contextOf, type StoreContext } from "./store-context.ts";
import type { PostgresStore } from "./store-options.ts";

/** Holds sessions that share records, which move together or not at all. */
export interface RelocatedFamily {
  /**
   * States the result of the family: `moved`, `busy` or `taken`. It is `busy` while a turn of a member is open, and a
   * later run moves it. It is `taken` if the target already has a session with such a key or id.
   */
  readonly outcome: "moved" | "busy" | "taken";
  /** Lists the sessions of the family with their ids. */
  readonly sessions: readonly { readonly ref: SessionRef; readonly sessionId: string }[];
  /** Counts the records that this run copied. */
  readonly records: number;
}

/** Holds the options of `relocateSessions`. */
export interface RelocateOptions {
  /** Limits the run to the sessions of this namespace. @default all */
  readonly namespace?: string | undefined;
  /** Ends the run between two families, which then throws ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

export const relocateTable: OptionTable<RelocateOptions> = { namespace: optionKinds.text, signal: optionKinds.signal };

/**
 * Moves sessions to another schema, in the same database or another one and of either layout, while programs write to
 * both. Records, payloads, files, revisions, fences, idempotency keys, forks and redactions move along. Sessions that share
 * records move together.
 *
 * The run may end at any time and start again: it loses nothing, doubles nothing, and no session is active in both
 * schemas. A moved session stays in the source, archived, with `movedTo` in its entry, until it is purged. Both stores
 * must be those of the owners of their schemas. Yields each family when it is done, the most recently written one last.
 * @throws {ThroughlineError} INPUT_INVALID, CODEC_FAILED, STORE_UNSUPPORTED, ABORTED, and those of the stores
 * @example for await (const { outcome, sessions } of relocateSessions(from, to)) console.log(outcome, sessions.length);
 */
export async function* relocateSessions(
  source: PostgresStore,
  target: PostgresStore,
  options: RelocateOptions = {},
): AsyncGenerator<RelocatedFamily> {
  assertKnownOptions<RelocateOptions>("relocateSessions", options, relocateTable);
  const { namespace, signal } = options;
  // The lists open both stores, because only an open store knows its layout.
  for (const store of [source, target]) await store.list({ limit: 1 });
  const [from, to] = [contextOf(source), contextOf(target)];
  const check = (): void => {
    if (signal?.aborted === true) throw abortedBefore("all sessions were moved", signal);
  };
  await assertFitting(from, to);
  const columns = async (table: string): Promise<Relocation["columns"]["sessions"]> =>
    (await columnsOf(placeOf(to).run, `${to.schema}.${table}`)).filter(({ name }) => name !== "tenant");
  const relocation: Relocation = {
    from,
    to,
    numbers: await rangeOf(from, to),
    columns: {
      sessions: await columns("sessions"),
      records: await columns("records"),
      keyed_appends: await columns("keyed_appends"),
    },
    check,
  };
  await dropLeftCopies(relocation);
  for (const family of await families(from, namespace, check)) {
    check();
    yield* moveFamily(relocation, family);
  }
  await copyUnusedFiles(relocation, namespace);
  await copyPurges(from, to, namespace, check);
  await dropLeftCopies(relocation);
}

/** Holds a session of the source, as a row and as texts for the copy. */
interface Member {
  readonly row: DatabaseRow;
  readonly texts: DatabaseRow;
  /** States the location before an earlier move, or null for a session that was not moved. */
  readonly movedFrom: MovedCopy | null;
}

/** Finishes the moves of an earlier run first, and then moves the remaining sessions. */
async function* moveFamily(relocation: Relocation, family: Family): AsyncGenerator<RelocatedFamily> {
  const members = await membersOf(relocation, family, placeOfAgent(relocation.from, family.agent).run, "");
  const left = members.filter(({ movedFrom }) => movedFrom?.isThere === false);
  if (left.length > 0) {
    const finished = await finish(relocation, family, left);
    if (finished !== null) yield finished;
  }
  const here = members.filter(({ movedFrom }) => movedFrom === null);
  if (here.length > 0)
    yield await moveMembers(relocation, { ...family, numbers: here.map(({ row }) => String(row["session_no"])) }, here);
}

async function moveMembers(
  relocation: Relocation,
  family: Family,
  before: readonly Member[],
): Promise<RelocatedFamily> {
  const { from, to } = relocation;
  const { agent } = family;
  let records = 0;
  // This copy runs while programs write, so that little is left to copy under the lock.
  for (const number of numbersOf(relocation, before))
    records += await copyNumber(relocation, number, placeOfAgent(from, agent), placeOfAgent(to, agent));
  const move = (runTo: RunStatement): Promise<RelocatedFamily["outcome"]> =>
    from.pool.transaction(async (runFrom) => {
      const members = await membersOf(relocation, family, runFrom, " FOR UPDATE OF t");
      // A member was purged, or another run moved it. The next run finds out which.
      if (members.length < before.length || members.some(({ movedFrom }) => movedFrom !== null)) return "busy";
      const nowMs = await databaseNowMs(from, runFrom);
      if (members.some(({ row }) => row["turn_id"] !== null && Number(row["lease_until_ms"]) > nowMs)) return "busy";
      const taken = await takeMembers(relocation, members, placeOf(from, runFrom), placeOf(to, runTo));
      if (taken === null) return "taken";
      records += taken;
      for (const member of members) await leave(relocation, member, runFrom);
      return "moved";
    }, agent);
  try {
    // The commit of the source decides. If this process ends before the commit of the target, the next run finds the
    // rows in the source.
    const outcome = await to.pool.transaction(move, agent);
    if (outcome === "moved") await noteArrival(relocation, family);
    return { outcome, records, sessions: sessionsOf(before) };
  } catch (error) {
    if (!hasErrorCode(error, "STORE_LOCKED")) throw error;
    return { outcome: "busy", records, sessions: sessionsOf(before) };
  }
}

function sessionsOf(members: readonly Member[]): RelocatedFamily["sessions"] {
  return members.map(({ row, movedFrom }) => {
    const ref = refOf({ ...row, archive_id: movedFrom?.archiveId ?? row["archive_id"] });
    return { ref, sessionId: String(row["session_id"]) };
  });
}

/** Inserts the missing rows into the target after the source has archived the family. */
async function finish(
  relocation: Relocation,
  family: Family,
  members: readonly Member[],
): Promise<RelocatedFamily | null> {
  const { from, to } = relocation;
  const [first] = members as readonly [Member];
  const isThere = async (run: RunStatement): Promise<boolean> => {
    const { layout } = to.found;
    const ref = refOf(first.row);
    const sql = `SELECT FROM ${to.schema}.sessions WHERE session_no = $1${layout.and("", "$2")}`;
    const number = newNumber(relocation, String(first.row["session_no"]));
    return (await run(sql, [number, ...layout.values(ref)])).length > 0;
  };
  let records = 0;
  const outcome = await to.pool.transaction(async (runTo) => {
    if (await isThere(runTo)) return null;
    const taken = await takeMembers(relocation, members, placeOfAgent(from, family.agent), placeOf(to, runTo));
    records = taken ?? 0;
    return taken === null ? ("taken" as const) : ("moved" as const);
  }, family.agent);
  if (outcome !== "taken") await noteArrival(relocation, family);
  return outcome === null ? null : { outcome, records, sessions: sessionsOf(members) };
}

/**
 * Copies the missing records and rows of the sessions to the target. Returns the number of records, or null if the
 * target already has a session with such a key or id.
 */
async function takeMembers(
  relocation: Relocation,
  members: readonly Member[],
  source: RowPlace,
  target: RowPlace,
): Promise<number | null> {
  if (await isTaken(relocation, members, target.run)) return null;
  let records = 0;
  for (const number of numbersOf(relocation, members)) {
    records += await copyNumber(relocation, number, source, target);
    await copyKeys(source, target, number, relocation.columns.keyed_appends);
    await dropRedactedReferences(source, target, number);
  }
  await insertMembers(relocation, members, target);
  return records;
}

async function membersOf(
  { from, columns }: Relocation,
  { numbers, agent }: Family,
  run: RunStatement,
  lock: string,
): Promise<readonly Member[]> {
  const tenant = from.found.layout.values(agent);
  const isMember = `t.session_no = ANY ($1::bigint[])${from.found.layout.and("t", "$2")}`;
  const rows = await run(
    `SELECT t.*, to_json(t.base_nos::text[]) AS bases FROM ${from.schema}.sessions t
     WHERE ${isMember} ORDER BY t.session_no${lock}`,
    [numbers, ...tenant],
  );
  const texts = await run(
    `SELECT ${asTexts(columns.sessions, "t")} FROM ${from.schema}.sessions t
     WHERE ${isMember} ORDER BY t.session_no`,
    [numbers, ...tenant],
  );
  const textOf = new Map(texts.map((row) => [String(row["session_no"]), row]));
  return rows.flatMap((row) => {
    const text = textOf.get(String(row["session_no"]));
    if (text === undefined) return [];
    return [{ row, texts: text, movedFrom: movedCopyOf(entryOf(from.rows, row)) }];
  });
}

/**
 * Returns the session numbers of the family's records: those of its members, and those of purged sessions whose records
 * they share.
 */
function numbersOf(relocation: Relocation, members: readonly Member[]): readonly CopiedNumber[] {
  const [first] = members;
  if (first === undefined) return [];
  const ref = refOf(first.row);
  const tenants = {
    fromTenant: relocation.from.found.layout.values(ref),
    toTenant: relocation.to.found.layout.values(ref),
  };
  const all = members.flatMap(({ row }) => [String(row["session_no"]), ...((row["bases"] ?? []) as readonly string[])]);
  return [...new Set(all)].map((from) => ({ from, to: newNumber(relocation, from), ...tenants }));
}

/** Copies records behind the earlier copy, and records that were redacted since. Returns their number. */
async function copyNumber(
  { columns, check }: Relocation,
  number: CopiedNumber,
  source: RowPlace,
  target: RowPlace,
): Promise<number> {
  const { run, schema, layout } = target;
  const sql = `SELECT max(seq) AS seq FROM ${schema}.records WHERE session_no = $1${layout.and("", "$2")}`;
  const [reached] = await run(sql, [number.to, ...number.toTenant]);
  const afterSeq = Number(reached?.["seq"] ?? 0);
  let records = await copyRecords(source, target, number, { afterSeq }, columns.records, check);
  const seqs = await differingSeqs(source, target, number);
  if (seqs.length > 0) records += await copyRecords(source, target, number, { seqs }, columns.records, check);
  await copyPayloads(source, target, number, check);
  await copyFilesOf(source, target, number, check);
  return records;
}

/** Inserts the sessions as they were before the move, with their turns closed. */
async function insertMembers(relocation: Relocation, members: readonly Member[], target: RowPlace): Promise<void> {
  const { run, schema, layout } = target;
  const { columns, from } = relocation;
  for (const { row, texts, movedFrom } of members) {
    const ref = refOf({ ...row, archive_id: movedFrom?.archiveId ?? row["archive_id"] });
    const tenant = layout.values(ref);
    await run(
      `INSERT INTO ${schema}.agents (namespace, folded_id, agent_id${layout.last("tenant")})
       VALUES ($1, lower($2), $2${layout.last("$3")}) ON CONFLICT DO NOTHING`,
      [ref.namespace, ref.agentId, ...tenant],
    );
    const bases = (row["bases"] ?? null) as readonly string[] | null;
    const moved = {
      ...texts,
      session_no: newNumber(relocation, String(row["session_no"])),
      archive_id: ref.archiveId ?? "",
      base_nos: bases === null ? null : arrayLiteral(bases.map((base) => newNumber(relocation, base))),
      turn_id: null,
      turn_owner: null,
      lease_until_ms: null,
      ...(movedFrom === null ? {} : unmarked(from, { ref, row })),
    };
    const into = { table: "sessions", columns: columns.sessions, key: ["session_no"], tenant };
    // An existing row of this number comes from an earlier attempt, because the range is reserved for the source.
    const inserted = await insertTexts(target, { ...into, where: " WHERE o.session_id = excluded.session_id" }, [
      moved,
    ]);
    if (inserted !== 1)
      throw new ThroughlineError("INTERNAL", "The target has another session of this number.", {
        outcome: "not-applied",
        details: { ...ref, sessionNo: moved.session_no },
      });
  }
  // The records are older than the minute that the search index has reached, so the next search indexes from the
  // beginning.
  await run(`UPDATE ${schema}.search_state SET caught_up_slot = 0`);
}

/** Returns the columns that a move has changed at the source, as they were before. */
function unmarked(from: StoreContext, at: { readonly ref: SessionRef; readonly row: DatabaseRow }): DatabaseRow {
  const entry = withoutNote(entryOf(from.rows, at.row));
  return { ...entryTexts(from, at, entry), source_digest: entrySourceDigest(entry) };
}

/** Encodes an entry for its new address, as texts of its columns. */
function entryTexts(
  context: StoreContext,
  { ref, row }: { readonly ref: SessionRef; readonly row: DatabaseRow },
  entry: SessionEntry,
): DatabaseRow {
  const place = { ref, sessionId: String(row["session_id"]) };
  const { names, values, coded } = entryColumns(context.rows, place, entry);
  return {
    entry_names: names === null ? null : arrayLiteral(names),
    entry_values: values === null ? null : arrayLiteral(values),
    entry_coded: coded === null ? null : `\\x${Buffer.from(coded).toString("hex")}`,
  };
}

/**
 * Archives the session in the source, with a note of its target in the entry. The revision stays, because the target
 * may still have to copy it. No list by source shows the copy, and its purge leaves no mark.
 */
async function leave({ from, to }: Relocation, { row }: Member, run: RunStatement): Promise<void> {
  const { layout } = from.found;
  const ref = refOf(row);
  const archiveId = String(row["archive_id"]);
  const kept = archiveId === "" ? String(row["session_id"]) : archiveId;
  const note = { schema: to.schema.replaceAll('"', ""), layout: to.found.layout.name, archiveId };
  const columns = entryTexts(from, { ref: { ...ref, archiveId: kept }, row }, withNote(entryOf(from.rows, row), note));
  const sql = `UPDATE ${from.schema}.sessions SET archive_id = $2, ${entryChange}, source_digest = NULL,
    turn_id = NULL, turn_owner = NULL, lease_until_ms = NULL
    WHERE session_no = $1${layout.and("", "$6")} RETURNING session_no`;
  const [left] = await run(sql, [row["session_no"], kept, ...Object.values(columns), ...layout.values(ref)]);
  if (left === undefined)
    throw new ThroughlineError("INTERNAL", "A session that was locked is gone.", {
      outcome: "not-applied",
      details: { ...ref },
    });
}

/** These columns of an entry take the parameters from 3 on. */
const entryChange = "entry_names = $3::text[], entry_values = $4::text[], entry_coded = $5::bytea";

/**
 * Notes that the target has the sessions. A later run then does not copy them again, even if the target has purged
 * them.
 */
async function noteArrival(relocation: Relocation, family: Family): Promise<void> {
  const { from } = relocation;
  const { layout } = from.found;
  await from.pool.transaction(async (run) => {
    for (const { row, movedFrom } of await membersOf(relocation, family, run, " FOR UPDATE OF t")) {
      if (movedFrom?.isThere !== false) continue;
      const entry = entryOf(from.rows, row);
      const { note } = movedFrom;
      const columns = entryTexts(from, { ref: refOf(row), row }, withNote(entry, { ...note, isThere: true }));
      const sql = `UPDATE ${from.schema}.sessions SET ${entryChange} WHERE session_no = $1 AND archive_id = $2${layout.and("", "$6")}`;
      await run(sql, [row["session_no"], row["archive_id"], ...Object.values(columns), ...layout.values(refOf(row))]);
    }
  }, family.agent);
}
