import {
  assertEntryBounds,
  draftsFingerprint,
  entryExcess,
  givenPatch,
  headAfter,
  isColumnText,
  lineBytes,
  type LinkedRecord,
  linkRecords,
  nextTurnState,
  patchEntry,
  prepareDrafts,
  type PreparedRecord,
  quote,
  refused,
  sha256Hex,
} from "@throughline/core/internal";
import { assertNotArchived } from "./plan-move.ts";
import type {
  AppendDraft,
  AppendOptions,
  AppendResult,
  Clock,
  Durability,
  RecordIds,
  SessionEntry,
  SessionEvent,
  SessionHead,
  StoreCapabilities,
} from "@throughline/core";
import { ThroughlineError } from "@throughline/core";
import type { AppendedRecord, StoreLimits } from "@throughline/core/internal";
import { planEntry, type SessionFrame } from "./session-frame.ts";

/** Holds an append that is prepared as far as possible before the session is locked. */
export interface AppendRequest {
  /** Holds the drafts, checked and completed. */
  readonly prepared: readonly PreparedRecord[];
  /** Holds the caller's options. */
  readonly options: AppendOptions;
  /** States the durability of the append. */
  readonly durability: Durability;
  /** Holds the limits of the store. */
  readonly limits: StoreLimits;
  /** Holds the idempotency key with a hash of the drafts; null without a key. */
  readonly keyed: {
    /** States the idempotency key. */
    readonly key: string;
    /** States the SHA-256 of the drafts in hex. */
    readonly digest: string;
  } | null;
}

/**
 * Checks everything that does not depend on the session.
 * @throws {ThroughlineError} CAPABILITY_UNSUPPORTED, INPUT_INVALID, RECORD_INVALID, RECORD_ID_TAKEN, BATCH_TOO_LARGE
 */
export function prepareAppend(
  drafts: readonly AppendDraft[],
  options: AppendOptions,
  store: { readonly capabilities: StoreCapabilities; readonly ids: RecordIds; readonly clock: Clock },
): AppendRequest {
  const { limits } = store.capabilities;
  const durability = writeDurability(store.capabilities, options.durability);
  const prepared = prepareDrafts(drafts, { ids: store.ids, clock: store.clock, limits });
  const { idempotencyKey: key, rewindTo } = options;
  if (rewindTo !== undefined && rewindTo !== null && !isColumnText(rewindTo, 256))
    throw refused("INPUT_INVALID", `rewindTo is the id of a record, not ${quote(rewindTo)}.`, { rewindTo });
  const own = options.entry === undefined ? options : { ...options, entry: givenPatch(options.entry) };
  const digest = key === undefined ? "" : sha256Hex(draftsFingerprint(drafts));
  return { prepared, options: own, durability, limits, keyed: key === undefined ? null : { key, digest } };
}

/** Gives a plan access to the session, under the exclusion of the write. */
export interface AppendTarget {
  /** Holds the session before the append. */
  readonly frame: SessionFrame;
  /** Returns the entry; called only when the append patches the entry. */
  entry(): SessionEntry;
  /** Returns whether a record of the session has this id. */
  holdsId(id: string): boolean;
  /**
   * Returns the result of the append that had this key, or null.
   * @throws {ThroughlineError} as `RememberedAppends.find`
   */
  findKeyed(key: string, digest: string): AppendResult | null;
}

/** Describes what an append writes, all of it or nothing. */
export interface AppendPlan {
  /** Holds the result for the caller. After a replay nothing is written. */
  readonly result: AppendResult;
  /** Holds the records to write, in the order of `result.records`. */
  readonly linked: readonly LinkedRecord[];
  /** Holds the session after the append. */
  readonly frame: SessionFrame;
  /** Holds the new entry; null keeps the current entry. */
  readonly entry: SessionEntry | null;
  /** Lists the events to announce after the write. */
  readonly events: readonly SessionEvent[];
}

/**
 * Returns an entry after a patch. An entry that another program made too large may still be changed, but no patch may
 * make an entry too large.
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function patchedWithin(entry: SessionEntry, patch: Readonly<Record<string, unknown>>): SessionEntry {
  const patched = patchEntry(entry, patch);
  if (entryExcess(patched) !== null && entryExcess(entry) === null) assertEntryBounds(patched);
  return patched;
}

/**
 * Decides an append, and refuses it in the order that the contract states. The caller must hold the same exclusion as
 * the write. `nowMs` is the store's clock.
 * @throws {ThroughlineError} SESSION_ARCHIVED, RECORD_TOO_LARGE, BATCH_TOO_LARGE, IDEMPOTENCY_MISMATCH,
 *   IDEMPOTENCY_EXPIRED, SESSION_BUSY, TURN_FENCED, APPEND_CONFLICT, RECORD_ID_TAKEN, INPUT_INVALID
 */
export function planAppend(request: AppendRequest, target: AppendTarget, nowMs: number): AppendPlan {
  const { prepared, options, durability, keyed } = request;
  const { ref, head: before, revision } = target.frame;
  assertNotArchived(ref);
  const linked = linkRecords(prepared, before.headId);
  assertBatchSize(linked, request.limits);
  const earlier = keyed === null ? null : target.findKeyed(keyed.key, keyed.digest);
  if (earlier !== null) return { result: earlier, linked: [], frame: target.frame, entry: null, events: [] };
  const head = headAfterAppend(before, linked, options, nowMs);
  for (const { record } of linked) {
    if (!target.holdsId(record.id)) continue;
    throw refused("RECORD_ID_TAKEN", `The session holds a record ${quote(record.id)}.`, { id: record.id });
  }
  const patched = options.entry === undefined ? null : patchedWithin(target.entry(), options.entry);
  const plan = patched === null ? null : planEntry(target.frame, patched, nowMs);
  const kept = plan?.frame ?? target.frame;
  // An append counts as activity, unless the writer states the time of the activity.
  const isActive = linked.length > 0 && options.entry?.["updatedAt"] === undefined;
  const updatedAtMs = isActive ? Math.max(kept.updatedAtMs, nowMs) : kept.updatedAtMs;
  const { sessionId, createdAtMs } = kept;
  const frame = { ref, sessionId, revision: kept.revision, head, createdAtMs, updatedAtMs };
  const records: AppendedRecord[] = [];
  for (const { record, side, tsMs } of linked) {
    const { id, parentId } = record;
    records.push({ seq: before.lastSeq + records.length + 1, id, parentId, side, tsMs, storedAtMs: nowMs });
  }
  const range = { fromSeq: before.lastSeq + 1, toSeq: head.lastSeq };
  const appended = linked.length === 0 ? [] : [{ name: "records-appended", ref, ...range } as const];
  return {
    result: {
      records,
      // The caller gets a copy, so that it shares no object with the store.
      head: { ...head, turn: head.turn === null ? null : { ...head.turn } },
      revision: plan?.frame.revision ?? revision,
      durability,
      replayed: false,
    },
    linked,
    frame,
    entry: plan?.entry ?? null,
    events: plan === null ? appended : [...plan.events, ...appended],
  };
}

/**
 * Returns the head of the session after an append, or throws the reason for a refusal. The caller must hold the same
 * exclusion as the write. `nowMs` is the store's clock. A turn that was taken over gets TURN_FENCED before
 * APPEND_CONFLICT, because loading again would not help it.
 * @throws {ThroughlineError} APPEND_CONFLICT, SESSION_BUSY, TURN_FENCED
 */
export function headAfterAppend(
  head: SessionHead,
  linked: readonly LinkedRecord[],
  options: Pick<AppendOptions, "expect" | "turn" | "rewindTo" | "windowFromSeq">,
  nowMs: number,
): SessionHead {
  const { expect, turn, rewindTo, windowFromSeq } = options;
  // A rewind moves the head under an open turn, like a main record does.
  const hasMainRecord = rewindTo !== undefined || headAfter(linked, null) !== null;
  const next = nextTurnState({ fence: head.fence, turn: head.turn }, turn, { hasMainRecord, nowMs });
  if (expect !== undefined && expect.head !== head.headId) {
    throw new ThroughlineError("APPEND_CONFLICT", `The head is ${quote(head.headId)}, not ${quote(expect.head)}.`, {
      outcome: "not-applied",
      details: { headId: head.headId, expectedHeadId: expect.head },
    });
  }
  return {
    sessionId: head.sessionId,
    lastSeq: head.lastSeq + linked.length,
    headId: rewindTo === undefined ? headAfter(linked, head.headId) : rewindTo,
    windowSeq: windowFromSeq ?? head.windowSeq,
    fence: next.fence,
    turn: next.turn,
  };
}

/**
 * Refuses records and batches that exceed the store's limits. The size of a record is the size of its line, imported or
 * serialized.
 * @throws {ThroughlineError} RECORD_TOO_LARGE, BATCH_TOO_LARGE
 */
export function assertBatchSize(linked: readonly LinkedRecord[], limits: StoreLimits): void {
  let batchBytes = 0;
  for (let index = 0; index < linked.length; index++) {
    const bytes = lineBytes(linked[index] as LinkedRecord);
    batchBytes += bytes;
    if (bytes > limits.recordBytes) throw tooLarge("RECORD_TOO_LARGE", `Draft ${index}`, bytes, limits.recordBytes);
  }
  if (batchBytes > limits.batchBytes) throw tooLarge("BATCH_TOO_LARGE", "The append", batchBytes, limits.batchBytes);
}

/**
 * Returns the durability of a write.
 * @throws {ThroughlineError} CAPABILITY_UNSUPPORTED when the store cannot give what is asked
 */
export function writeDurability(capabilities: StoreCapabilities, asked: Durability | undefined): Durability {
  const durability = asked ?? capabilities.defaultDurability;
  if (capabilities.durabilities.includes(durability)) return durability;
  throw new ThroughlineError(
    "CAPABILITY_UNSUPPORTED",
    `The store ${capabilities.name} cannot write with durability ${quote(asked)}.`,
    {
      outcome: "not-applied",
      details: { asked, durabilities: capabilities.durabilities },
    },
  );
}

function tooLarge(
  code: "RECORD_TOO_LARGE" | "BATCH_TOO_LARGE",
  what: string,
  bytes: number,
  limit: number,
): ThroughlineError {
  return new ThroughlineError(code, `${what} has ${bytes} bytes; the store takes ${limit}.`, {
    outcome: "not-applied",
    details: { bytes, limit },
  });
}
