import type { Durability, SaveOptions, SessionEntry, SessionRef, SessionState } from "@throughline/core";
import { entrySourceDigest, givenEntry, patchEntry, refused, sessionNotFound } from "@throughline/core/internal";
import { assertIdsFree, beginningMs, planSave, type SessionFrame } from "@throughline/store-kit/internal";
import { addressOf, newAddressOf, wholeTime } from "./append-records.ts";
import { breaksIndex, nativeCode } from "./postgres-errors.ts";
import { entryColumns, frameOf, numberOrNull, stateOf, textOrNull, type DatabaseRow } from "./row-values.ts";
import { savedColumns } from "./save-function.ts";
import type { StoreContext } from "./store-context.ts";

/** Replaces the entry, begins a session, or begins the next session of a key, in one round trip. */
export async function saveEntry(
  context: StoreContext,
  ref: SessionRef,
  given: SessionEntry,
  options: Pick<SaveOptions, "ifRevision" | "createdAtMs"> & { readonly durability: Durability },
): Promise<SessionState> {
  assertBeginning(options);
  let entry = givenEntry(given);
  const idProblem = problemOf(ref, entry.sessionId);
  if (idProblem !== null && addressOf(ref) === null) throw idProblem;
  const address = newAddressOf(ref);
  for (let attempt = 0; ; attempt++) {
    const place = { ref, sessionId: entry.sessionId };
    const { names, values, coded } = entryColumns(context.rows, place, entry);
    const row = await callSave(context, ref, options.createdAtMs, [
      ...context.found.layout.values(ref),
      ...address,
      options.durability === "disk",
      context.lockTimeout,
      options.ifRevision,
      idProblem === null ? entry.sessionId : entry.sessionId.toWellFormed().replaceAll("\0", " "),
      idProblem === null,
      names,
      values,
      coded,
      wholeTime(entry.updatedAt),
      entrySourceDigest(entry),
    ]);
    const verdict = String(row["verdict"]);
    if (verdict === "SAVED") {
      context.sessionIds.set(address.join("\0"), entry.sessionId);
      return saved(context, ref, given, row);
    }
    const nowMs = Number(row["now_ms"]);
    const current = row["session_no"] === null ? null : frameOf(row);
    if (verdict === "CLAMPED" && attempt < 2) {
      const isSame = current?.sessionId === entry.sessionId;
      entry = patchEntry(entry, { updatedAt: isSame ? Math.max(nowMs, current?.updatedAtMs ?? 0) : nowMs });
      continue;
    }
    throw refusalOf(ref, { entry, idProblem, current, nowMs, ...options, verdict, holder: textOrNull(row["holder"]) });
  }
}

function refusalOf(
  ref: SessionRef,
  found: {
    readonly entry: SessionEntry;
    readonly idProblem: unknown;
    readonly current: SessionFrame | null;
    readonly ifRevision: number | null;
    readonly nowMs: number;
    readonly verdict: string;
    readonly holder: string | null;
  },
): unknown {
  const { entry, current, verdict } = found;
  const holder = found.holder ?? undefined;
  try {
    planSave(current === null ? null : { ...current, ref }, ref, entry, found);
    if (found.idProblem !== null) return found.idProblem;
    const { sessionId } = entry;
    if (verdict === "AGENT_TAKEN") assertIdsFree({ ref, sessionId }, { agentId: holder, sessionId: undefined });
    if (verdict === "ID_TAKEN") assertIdsFree({ ref, sessionId }, { agentId: undefined, sessionId: holder });
  } catch (error) {
    return error;
  }
  return refused("INTERNAL", "The database refused an entry that the contract allows.", { verdict });
}

function saved(context: StoreContext, ref: SessionRef, given: SessionEntry, row: DatabaseRow): SessionState {
  const state = stateOf(context.rows, row);
  const archivedId = textOrNull(row["archived_id"]);
  if (archivedId !== null)
    context.announce({ name: "session-archived", ref: { ...ref, archiveId: archivedId }, sessionId: archivedId });
  if (row["is_new"] === true) context.announce({ name: "session-created", ref: state.ref, sessionId: state.sessionId });
  const claimedMs = numberOrNull(given.updatedAt);
  if (row["was_clamped"] === true || (claimedMs !== null && claimedMs > Number(row["now_ms"]) + 5 * 60_000))
    context.announce({
      name: "updated-at-clamped",
      ref: state.ref,
      claimedMs: claimedMs ?? 0,
      storedMs: state.updatedAtMs,
    });
  return state;
}

/** Any past time is allowed here, because only the database's clock can tell a future one. */
function assertBeginning(options: Pick<SaveOptions, "createdAtMs">): void {
  beginningMs({ ...options, nowMs: Number.MAX_SAFE_INTEGER });
}

/** Begins a session with an earlier creation time, which is set in the same transaction. */
async function saveFrom(
  context: StoreContext,
  ref: SessionRef,
  {
    sql,
    values,
    createdAtMs,
  }: { readonly sql: string; readonly values: readonly unknown[]; readonly createdAtMs: number },
): Promise<DatabaseRow | undefined> {
  const { layout } = context.found;
  return context.pool.transaction(async (run) => {
    const [row] = await run(sql, values);
    if (row?.["verdict"] !== "SAVED" || row["is_new"] !== true) return row;
    const [begun] = await run(
      `UPDATE ${context.schema}.sessions SET created_at_ms = least(created_at_ms, $2)
       WHERE session_no = $1${layout.and("", "$3")} RETURNING created_at_ms`,
      [row["session_no"], createdAtMs, ...layout.values(ref)],
    );
    return { ...row, ...begun };
  }, ref);
}

async function callSave(
  context: StoreContext,
  ref: SessionRef,
  createdAtMs: number | undefined,
  values: readonly unknown[],
): Promise<DatabaseRow> {
  const parameters = values.map((_value, index) => `$${index + 1}`).join(", ");
  const sql = `SELECT f.verdict, f.now_ms, f.holder, f.is_new, f.was_clamped, f.archived_id, ${savedColumns} FROM ${context.schema}.save_1(${parameters}) AS f`;
  try {
    const row =
      createdAtMs === undefined
        ? (await context.pool.run(sql, values, { agent: ref }))[0]
        : await saveFrom(context, ref, { sql, values, createdAtMs });
    if (row === undefined) throw sessionNotFound(ref);
    return row;
  } catch (error) {
    const cause = (error as { readonly cause?: unknown }).cause;
    // Two sessions with this id began at the same moment under two keys.
    if (nativeCode(cause) === "23505" && breaksIndex(cause, "sessions_"))
      throw refused("SESSION_EXISTS", "A session with this id was begun at the same moment.", { ...ref }, cause);
    throw error;
  }
}

/** Returns the error for invalid ids, or null. It is thrown only if a session begins. */
function problemOf(ref: SessionRef, sessionId: string): unknown {
  try {
    assertIdsFree({ ref, sessionId }, { agentId: undefined, sessionId: undefined });
    return null;
  } catch (error) {
    return error;
  }
}
