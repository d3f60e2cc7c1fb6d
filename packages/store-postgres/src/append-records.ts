import type { AppendOptions, AppendResult, SessionEntry, SessionRef } from "@throughline/core";
import { hasErrorCode, ThroughlineError } from "@throughline/core";
import {
  assertIdempotencyKey,
  entrySourceDigest,
  fileIdsOf,
  entryTooLarge,
  isColumnText,
  patchEntry,
  type PreparedRecord,
  quote,
  refused,
  sessionNotFound,
} from "@throughline/core/internal";
import {
  type AppendRequest,
  assertKeyFits,
  assertRef,
  patchedWithin,
  planAppend,
} from "@throughline/store-kit/internal";
import {
  batchOrder,
  readAnswer,
  requestOrder,
  type AppendPath,
  type BatchField,
  type RequestField,
} from "./append-request.ts";
import { applied, replayed } from "./append-result.ts";
import { arrayLiteral } from "./array-literal.ts";
import { parametersOf, type Layout } from "./layout.ts";
import { breaksIndex, nativeCode } from "./postgres-errors.ts";
import { batchColumns, columnText, type BatchColumns } from "./record-columns.ts";
import { canHold, entryColumns, fieldColumns, headOf, numberOrNull, type DatabaseRow } from "./row-values.ts";
import type { StoreContext } from "./store-context.ts";

/** A patch of this field changes the source by which a session is listed. */
const sourceField = "importedFrom";

/** An append is repeated after it met its twin, and when its coded part no longer fits the session. */
const maxAttempts = 8;

/** The client must know these values before it can encode payloads, which are bound to a session. */
interface Facts {
  readonly sessionId: string;
  readonly revision: number | null;
  readonly entry: SessionEntry | null;
}

/** The append met an earlier one with its key, or was encoded for another session, and must be sent again. */
const twin: DatabaseRow = { verdict: "TWIN" };

/**
 * These errors come from the server or the network. All others are decisions of the store after it looked up the key.
 */
const unjudged = /^(STORE_(?!CLOSED)|INTERNAL)/;

/**
 * An append that failed before the store looked up its key leaves the outcome of earlier attempts open. They may have
 * been applied, so the outcome becomes `unknown`.
 */
export function keyedFailure(error: unknown, { idempotencyKey, isNewKey = false }: AppendOptions): unknown {
  if (idempotencyKey === undefined || isNewKey || !ThroughlineError.isInstance(error)) return error;
  if (error.outcome !== "not-applied" || !unjudged.test(error.code)) return error;
  const { code, message, details, remedy } = error;
  return new ThroughlineError(code, message, { outcome: "unknown", details, remedy, cause: error.cause });
}

/** Appends in one round trip. Under a codec a second one may be needed to learn the session id or the entry. */
export async function appendRecords(
  context: StoreContext,
  ref: SessionRef,
  request: AppendRequest,
): Promise<AppendResult> {
  const { keyed, options } = request;
  if (keyed !== null) assertIdempotencyKey(keyed.key);
  const sizes = batchColumns(context.plainRows, { ref, sessionId: "" }, request.prepared);
  assertSizes(request, sizes.totalBytes);
  const address = addressOf(ref);
  if (address === null) throw sessionNotFound(ref);
  let facts = await firstFacts(context, ref, request);
  for (let attempt = 0; ; attempt++) {
    const columns =
      facts === null ? sizes : batchColumns(context.rows, { ref, sessionId: facts.sessionId }, request.prepared);
    const values = appendValues(context, { ref, address, request, columns, facts });
    const row = await callAppend(context, values, ref, options.signal).catch((error: unknown) => {
      // An earlier attempt with this key was committed after the lookup, and holds the ids. The next lookup finds it.
      if (keyed !== null && attempt === 0 && hasErrorCode(error, "RECORD_ID_TAKEN")) return twin;
      throw error;
    });
    if (row === undefined) throw sessionNotFound(ref);
    context.sessionIds.set(address.join("\0"), String(row["session_id"]));
    if (row["verdict"] === "APPLIED") return applied(context, ref, { request, columns }, row);
    if (row["verdict"] === "REPLAYED") return replayed(row);
    if (row["verdict"] !== "TWIN") refuse(context, ref, request, row);
    if (attempt >= maxAttempts)
      throw refused("STORE_LOCKED", `The session ${quote(ref.key)} changed ${maxAttempts} times in a row.`, { ...ref });
    if (context.rows.isCoded) facts = await currentFacts(context, ref, options, numberOrNull(row["now_ms"]));
  }
}

/** Without a codec payloads are not bound to the session, so the statement needs no facts. */
async function firstFacts(context: StoreContext, ref: SessionRef, request: AppendRequest): Promise<Facts | null> {
  if (!context.rows.isCoded) return null;
  const known = context.sessionIds.get(addressOf(ref)?.join("\0") ?? "");
  if (known !== undefined && request.options.entry === undefined)
    return { sessionId: known, revision: null, entry: null };
  return currentFacts(context, ref, request.options, null);
}

async function currentFacts(
  context: StoreContext,
  ref: SessionRef,
  options: AppendOptions,
  nowMs: number | null,
): Promise<Facts> {
  const state = await context.load(ref);
  if (state === null) throw sessionNotFound(ref);
  if (options.entry === undefined) return { sessionId: state.sessionId, revision: null, entry: null };
  const patched = patchedWithin(state.entry, options.entry);
  const claimedMs = options.entry["updatedAt"];
  const isAhead = nowMs !== null && typeof claimedMs === "number" && claimedMs > nowMs + 5 * 60_000;
  const entry = isAhead ? patchEntry(patched, { updatedAt: Math.max(nowMs, state.updatedAtMs) }) : patched;
  return { sessionId: state.sessionId, revision: state.revision, entry };
}

async function callAppend(
  context: StoreContext,
  values: readonly unknown[],
  ref: SessionRef,
  signal: AbortSignal | undefined,
): Promise<DatabaseRow | undefined> {
  try {
    const [row] = await context.pool.run(context.found.appendSql, values, { isFrequent: true, signal, agent: ref });
    const answer = row?.["answer"];
    return typeof answer === "string" ? readAnswer(answer) : undefined;
  } catch (error) {
    const cause = (error as { readonly cause?: unknown }).cause;
    const native = nativeCode(cause);
    if (native === "TL001") return twin;
    if (native === "TL002" || (native === "23505" && breaksIndex(cause, "records_")))
      throw refused(
        "RECORD_ID_TAKEN",
        `The session ${quote(ref.key)} holds a record with an id of the batch.`,
        {},
        cause,
      );
    throw error;
  }
}

/**
 * Throws the error that core's rules give for the state that the statement found. Returns if only the encoding was
 * outdated.
 */
function refuse(context: StoreContext, ref: SessionRef, request: AppendRequest, row: DatabaseRow): void {
  const verdict = String(row["verdict"]);
  const key = request.keyed?.key ?? "";
  if (verdict === "IDEMPOTENCY_MISMATCH")
    throw refused(verdict, `Other drafts were appended with this key: ${quote(key)}.`, { idempotencyKey: key });
  if (verdict === "IDEMPOTENCY_EXPIRED")
    // The row of the key is gone, so the outcome of an earlier attempt is unknown.
    throw new ThroughlineError(verdict, `The key is older than what is remembered: ${quote(key)}.`, {
      outcome: "unknown",
      details: { idempotencyKey: key },
    });
  const head = headOf(row);
  const frame = {
    ref,
    sessionId: head.sessionId,
    revision: Number(row["revision"]),
    head,
    createdAtMs: 0,
    updatedAtMs: 0,
  };
  planAppend(
    request,
    { frame, entry: () => ({ sessionId: head.sessionId }), holdsId: () => false, findKeyed: () => null },
    Number(row["now_ms"]),
  );
  if (verdict === "ENTRY_members" || verdict === "ENTRY_bytes")
    throw entryTooLarge(verdict === "ENTRY_members" ? "members" : "bytes");
  if (!context.rows.isCoded)
    throw refused("INTERNAL", "The database refused an append that the contract allows.", { verdict, ...head });
}

/**
 * Counts the parent as null where it is the head, because only the database knows the head. A line may therefore be
 * longer by the length of an id.
 */
function assertSizes({ limits }: AppendRequest, bytes: readonly number[]): void {
  let batchBytes = 0;
  for (const [index, size] of bytes.entries()) {
    batchBytes += size;
    if (size > limits.recordBytes)
      throw refused("RECORD_TOO_LARGE", `Draft ${index} has ${size} bytes; the store takes ${limits.recordBytes}.`, {
        bytes: size,
        limit: limits.recordBytes,
      });
  }
  if (batchBytes > limits.batchBytes)
    throw refused("BATCH_TOO_LARGE", `The append has ${batchBytes} bytes; the store takes ${limits.batchBytes}.`, {
      bytes: batchBytes,
      limit: limits.batchBytes,
    });
}

/**
 * Returns the columns of an address. Returns null for an address that no column can hold, because no session can have
 * it.
 */
export function addressOf(ref: SessionRef): readonly string[] | null {
  assertRef(ref);
  const { namespace, agentId, key, archiveId = "" } = ref;
  const parts = [namespace, agentId, key, archiveId];
  return canHold(parts) ? parts : null;
}

/**
 * Returns the columns of an address for a new session.
 * @throws {ThroughlineError} KEY_INVALID, SESSION_NOT_FOUND
 */
export function newAddressOf(ref: SessionRef): readonly string[] {
  assertKeyFits(ref.key);
  const address = addressOf(ref);
  // An archive id that no column can hold names no session.
  if (address === null) throw sessionNotFound(ref);
  return address;
}

interface AppendCall {
  readonly ref: SessionRef;
  readonly address: readonly string[];
  readonly request: AppendRequest;
  readonly columns: BatchColumns;
  readonly facts: Facts | null;
}

function appendValues(context: StoreContext, call: AppendCall): readonly unknown[] {
  const { address, request, columns, facts } = call;
  const { prepared, options, durability, keyed } = request;
  const { turn, expect, rewindTo, entry } = options;
  const isSet = rewindTo !== undefined || columns.lastMainId !== null;
  const newHead = rewindTo === undefined ? columns.lastMainId : rewindTo;
  const claimed = entry?.["updatedAt"];
  const coded =
    facts?.entry === null || facts === null
      ? null
      : entryColumns(context.rows, { ref: call.ref, sessionId: facts.sessionId }, facts.entry).coded;
  const patch = entry === undefined || context.rows.isCoded ? null : fieldColumns(entry);
  const claimedMs = context.rows.isCoded ? facts?.entry?.updatedAt : claimed;
  const fields: AskedFields = {
    namespace: address[0],
    agent_id: address[1],
    key: address[2],
    archive_id: address[3],
    lock_timeout: context.lockTimeout,
    is_flushed: durability === "disk",
    record_count: prepared.length,
    message_count: columns.messages,
    is_head_set: isSet,
    new_head: newHead,
    new_head_bytes: isSet ? Buffer.byteLength(JSON.stringify(newHead)) : null,
    is_active: prepared.length > 0 && claimed === undefined,
    window_from: options.windowFromSeq,
    ...(expect === undefined ? {} : { has_expect: true, expected_head: columnText(expect.head) }),
    ...(turn === undefined ? {} : turnFields(turn)),
    ...(isOdd(request) ? { is_refused: true } : {}),
    ...(keyed === null ? {} : keyFields(keyed, durability)),
    ...(entry === undefined ? {} : { has_entry: true, claimed_ms: wholeTime(claimedMs) }),
    ...fileFields(prepared),
    for_session_id: typeof entry?.["sessionId"] === "string" ? columnText(entry["sessionId"]) : facts?.sessionId,
    for_revision: facts?.revision,
    ...(entry !== undefined && Object.hasOwn(entry, sourceField)
      ? { sets_source: true, source_digest: entrySourceDigest({ ...entry, sessionId: "" }) }
      : {}),
  };
  const others: Partial<Record<BatchField, unknown>> = {
    given_ids: givenIds(prepared),
    names: patch?.names,
    vals: patch?.values,
    coded_entry: coded,
  };
  const asked = requestOrder.map((name) => fields[name]);
  const last = asked.findLastIndex((value) => value !== undefined && value !== null);
  const batch = batchOrder.map((name) => {
    const value = columns[name as keyof BatchColumns] ?? others[name] ?? null;
    return Array.isArray(value) ? arrayLiteral(value) : value;
  });
  const path: AppendPath = context.found.isDistributed ? 3 : pathOf(call, fields);
  return [...context.found.layout.values(call.ref), path, arrayLiteral(asked.slice(0, last + 1)), ...batch];
}

/**
 * Chooses the path; see `AppendPath`. An id that the client chose may already exist in shared records of a fork, and
 * only path 0 checks that.
 */
function pathOf({ request, columns }: AppendCall, fields: AskedFields): AppendPath {
  const { prepared, options, keyed } = request;
  const isOwn = columns.joined_rests !== null && prepared.every(({ isIdGiven }) => !isIdGiven);
  const isPlain = keyed === null && options.entry === undefined && fields["file_ids"] === undefined;
  if (!isOwn || !isPlain || fields["archive_id"] !== "" || fields["is_refused"] === true) return 0;
  return options.turn === undefined && options.expect === undefined && fields["is_head_set"] === true ? 1 : 2;
}

type AskedFields = Partial<Record<RequestField, unknown>>;

function turnFields(turn: NonNullable<AppendOptions["turn"]>): AskedFields {
  const opened = turn.action === "open" ? turn : null;
  return {
    turn: turn.action,
    turn_fence: turn.fence,
    turn_id: columnText(opened?.turnId ?? null),
    turn_owner: columnText(opened?.owner ?? null),
    turn_until: "leaseUntilMs" in turn ? turn.leaseUntilMs : null,
  };
}

function keyFields({ key, digest }: NonNullable<AppendRequest["keyed"]>, durability: string): AskedFields {
  const madeAtMs = /^\d{13}_/.test(key) ? key.slice(0, 13) : null;
  return { idem_key: key, digest: Buffer.from(digest, "hex"), made_at_ms: madeAtMs, durability };
}

function fileFields(prepared: readonly PreparedRecord[]): AskedFields {
  const named = prepared.flatMap(({ fields }, index) => fileIdsOf(fields).map((id) => ({ id, record: index + 1 })));
  if (named.length === 0) return {};
  const records = arrayLiteral(named.map(({ record }) => record));
  return { file_ids: arrayLiteral(named.map(({ id }) => id)), file_records: records };
}

function givenIds(prepared: readonly PreparedRecord[]): readonly string[] | null {
  const given = prepared.filter(({ isIdGiven }) => isIdGiven).map(({ id }) => id);
  return given.length === 0 ? null : given;
}

/**
 * Core refuses these only after it has seen the session: a turn with invalid names or end, and a session id that is no
 * text.
 */
function isOdd({ options }: AppendRequest): boolean {
  const { turn, entry } = options;
  const isOddTurn =
    turn !== undefined &&
    (("leaseUntilMs" in turn && !Number.isFinite(turn.leaseUntilMs)) ||
      (turn.action === "open" && ![turn.turnId, turn.owner].every((text) => isColumnText(text, 256))));
  // The statement compares a session id in the patch. A value that is no text can never be equal.
  return (
    isOddTurn || (entry !== undefined && Object.hasOwn(entry, "sessionId") && typeof entry["sessionId"] !== "string")
  );
}

/** Returns a claimed time as the database accepts it, or null if none is claimed. */
export function wholeTime(claimedMs: unknown): number | null {
  if (typeof claimedMs !== "number" || !Number.isFinite(claimedMs)) return null;
  return Math.max(Math.trunc(claimedMs), -Number.MAX_SAFE_INTEGER);
}

export function appendSql(schema: string, layout: Layout): string {
  return `SELECT ${schema}.append_1(${parametersOf(layout, batchOrder.length + 2)}) AS answer`;
}
