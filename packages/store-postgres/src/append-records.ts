import type { AppendOptions, AppendResult, SessionEntry, SessionRef } from "@throughline/core";
import { hasErrorCode, ThroughlineError } from "@throughline/core";
import {
  assertIdempotencyKey,
  entryTooLarge,
  isColumnText,
  patchEntry,
  type PreparedRecord,
  quote,
  refused,
  sessionNotFound,
} from "@throughline/core/internal";
import { type AppendRequest, assertKeyFits, assertRef, patchedWithin } from "@throughline/store-kit/internal";
import { planAppend } from "@throughline/store-kit";
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
import { entryColumns, fieldColumns, headOf, numberOrNull, type DatabaseRow } from "./row-values.ts";
import type { StoreContext } from "./store-context.ts";

/** How often an append is repeated that met its twin, or whose coded part must be coded again. */
const maxAttempts = 8;

/** What the client has to know of a session before it can code what is bound to it. */
interface Facts {
  readonly sessionId: string;
  readonly revision: number | null;
  readonly entry: SessionEntry | null;
}

/** The append met an earlier one with its key, or was coded for another session: it is asked again. */
const twin: DatabaseRow = { verdict: "TWIN" };

/** What a server or a network does to an append, in contrast to what the store judges after it has looked for the key. */
const unjudged = /^(STORE_(?!CLOSED)|INTERNAL)/;

/**
 * If an append failed before the store had looked for its key, earlier attempts with that key may have been applied.
 */
export function keyedFailure(error: unknown, { idempotencyKey, isNewKey = false }: AppendOptions): unknown {
  if (idempotencyKey === undefined || isNewKey || !ThroughlineError.isInstance(error)) return error;
  if (error.outcome !== "not-applied" || !unjudged.test(error.code)) return error;
  const { code, message, details, remedy } = error;
  return new ThroughlineError(code, message, { outcome: "unknown", details, remedy, cause: error.cause });
}

/** One statement, one round trip; under a codec one more where the session's id or entry has to be known first. */
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
      // The ids of an earlier attempt with this key, committed after the key was looked for: the next look finds it.
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

/** Without a codec nothing is bound to the session, and the statement needs no facts. */
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
    const [row] = await context.pool.run(context.found.appendSql, values, { isFrequent: true, signal });
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

/** Throws what core's own rules say to the state that the statement found; returns when it was only a matter of coding. */
function refuse(context: StoreContext, ref: SessionRef, request: AppendRequest, row: DatabaseRow): void {
  const verdict = String(row["verdict"]);
  const key = request.keyed?.key ?? "";
  if (verdict === "IDEMPOTENCY_MISMATCH")
    throw refused(verdict, `Other drafts were appended with this key: ${quote(key)}.`, { idempotencyKey: key });
  if (verdict === "IDEMPOTENCY_EXPIRED")
    // Nobody knows any more whether an earlier attempt was applied.
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

/** Counted with the parent as null where it is the head, which only the database knows: a line may be longer by an id. */
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

/** The columns of an address; null for one that no session can have, because no column can hold it. */
export function addressOf(ref: SessionRef): readonly string[] | null {
  assertRef(ref);
  const { namespace, agentId, key, archiveId = "" } = ref;
  const parts = [namespace, agentId, key, archiveId];
  return parts.every((part) => part.isWellFormed() && !part.includes("\0")) ? parts : null;
}

/**
 * The columns of an address at which a session is to begin.
 * @throws {ThroughlineError} KEY_INVALID, SESSION_NOT_FOUND
 */
export function newAddressOf(ref: SessionRef): readonly string[] {
  assertKeyFits(ref.key);
  const address = addressOf(ref);
  // No session is archived under an id that no column holds.
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
    for_session_id: typeof entry?.["sessionId"] === "string" ? columnText(entry["sessionId"]) : facts?.sessionId,
    for_revision: facts?.revision,
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
  const path = context.found.isDistributed ? 0 : pathOf(call, fields);
  return [...context.found.layout.values(call.ref), path, arrayLiteral(asked.slice(0, last + 1)), ...batch];
}

/** See `AppendPath`. What the client chooses its ids for may be taken in what a fork shares, which takes another look. */
function pathOf({ request, columns }: AppendCall, fields: AskedFields): AppendPath {
  const { prepared, options, keyed } = request;
  const isOwn = columns.joined_rests !== null && prepared.every(({ isIdGiven }) => !isIdGiven);
  const isPlain = keyed === null && options.entry === undefined;
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

function givenIds(prepared: readonly PreparedRecord[]): readonly string[] | null {
  const given = prepared.filter(({ isIdGiven }) => isIdGiven).map(({ id }) => id);
  return given.length === 0 ? null : given;
}

/** What core refuses only after it has looked at the session: a turn whose names or end are none, a foreign session id. */
function isOdd({ options }: AppendRequest): boolean {
  const { turn, entry } = options;
  const isOddTurn =
    turn !== undefined &&
    (("leaseUntilMs" in turn && !Number.isFinite(turn.leaseUntilMs)) ||
      (turn.action === "open" && ![turn.turnId, turn.owner].every((text) => isColumnText(text, 256))));
  // A session id in the patch is compared by the statement; what is no text cannot be one.
  return (
    isOddTurn || (entry !== undefined && Object.hasOwn(entry, "sessionId") && typeof entry["sessionId"] !== "string")
  );
}

/** A claimed time as the database takes it; null for what claims none. */
export function wholeTime(claimedMs: unknown): number | null {
  if (typeof claimedMs !== "number" || !Number.isFinite(claimedMs)) return null;
  return Math.max(Math.trunc(claimedMs), -Number.MAX_SAFE_INTEGER);
}

/** The call of the function. */
export function appendSql(schema: string, layout: Layout): string {
  return `SELECT ${schema}.append_1(${parametersOf(layout, batchOrder.length + 2)}) AS answer`;
}
