import type {
  AppendDraft,
  ErrorCode,
  OpenTurn,
  SessionEntry,
  SessionHead,
  SessionRecord,
  SessionRef,
  SessionState,
} from "@throughline/core";
import type { RecordSource } from "@throughline/core/internal";

/*
 * The model holds a store's state as plain data, and implements the contract of each operation as briefly as possible.
 * It is written from `session-store.ts` alone and shares no decision with the stores. A wrong rule in core's plans
 * would otherwise be wrong on both sides.
 */

/** Holds a record. Sessions that have it in common share the object, so a redaction changes it in all of them. */
export interface ModelRecord {
  record: SessionRecord;
  /** Holds the line that the record came in; null means its own JSON. */
  source: RecordSource | null;
  isSourceCanonical: boolean;
  bytes: number;
  readonly side: boolean;
  readonly tsMs: number | null;
  /** Null means that another program wrote the record. */
  readonly storedAtMs: number | null;
}

/** Holds the answer to a keyed append, and its drafts. */
interface ModelKeyedAppend {
  readonly drafts: readonly AppendDraft[];
  readonly answer: ModelAppendAnswer;
}

/** Holds the part of an append's result that does not depend on the durability. */
export interface ModelAppendAnswer {
  readonly records: readonly {
    readonly seq: number;
    readonly id: string;
    readonly parentId: string | null;
    readonly side: boolean;
    readonly tsMs: number | null;
    readonly storedAtMs: number | null;
  }[];
  readonly head: SessionHead;
  readonly revision: number;
  readonly replayed: boolean;
}

export interface ModelSession {
  ref: SessionRef;
  readonly sessionId: string;
  entry: SessionEntry;
  revision: number;
  headId: string | null;
  windowSeq: number | null;
  fence: number;
  turn: OpenTurn | null;
  readonly createdAtMs: number;
  updatedAtMs: number;
  /** The record with seq n is at index n - 1. */
  readonly records: ModelRecord[];
  readonly keyed: Map<string, ModelKeyedAppend>;
  /**
   * Holds the heads that the session had, by its number of records then. A fork of that many records may have any of
   * them.
   */
  readonly headsAt: Map<number, Set<string | null>>;
  /**
   * Is true when another program changed the session. The store decides how its revision and activity time change then.
   */
  isTouchedByOthers: boolean;
}

export interface SessionModel {
  readonly sessions: ModelSession[];
  nowMs: number;
  isClockSetBack: boolean;
}

export function createSessionModel(nowMs: number): SessionModel {
  return { sessions: [], nowMs, isClockSetBack: false };
}

/** Reports that the model refuses an operation. The store must fail with one of these codes. */
export class ModelRefusal extends Error {
  override readonly name: string = "ModelRefusal";
  readonly codes: readonly ErrorCode[];

  constructor(...codes: readonly ErrorCode[]) {
    super(codes.join(" or "));
    this.codes = codes;
  }
}

export function findSession(model: SessionModel, ref: SessionRef): ModelSession | undefined {
  return model.sessions.find((session) => isSameAddress(session.ref, ref));
}

/** @throws {ModelRefusal} SESSION_NOT_FOUND */
export function foundSession(model: SessionModel, ref: SessionRef): ModelSession {
  const session = findSession(model, ref);
  if (session === undefined) throw new ModelRefusal("SESSION_NOT_FOUND");
  return session;
}

function isSameAddress(one: SessionRef, other: SessionRef): boolean {
  const { namespace, agentId, key, archiveId } = one;
  return (
    namespace === other.namespace && agentId === other.agentId && key === other.key && archiveId === other.archiveId
  );
}

export function headOf(session: ModelSession): SessionHead {
  const { sessionId, records, headId, windowSeq, fence, turn } = session;
  return { sessionId, lastSeq: records.length, headId, windowSeq, fence, turn: turn === null ? null : { ...turn } };
}

export function stateOf(session: ModelSession): SessionState {
  const { ref, sessionId, entry, revision, createdAtMs, updatedAtMs, records } = session;
  return {
    ref: { ...ref },
    sessionId,
    archived: ref.archiveId !== undefined,
    entry: structuredClone(entry),
    revision,
    head: headOf(session),
    messageCount: records.filter(({ record }) => record.type === "message").length,
    createdAtMs,
    updatedAtMs,
  };
}

export function newSession(model: SessionModel, ref: SessionRef, entry: SessionEntry, revision: number): ModelSession {
  const { sessionId } = entry;
  const session: ModelSession = {
    ref: { namespace: ref.namespace, agentId: ref.agentId, key: ref.key },
    sessionId,
    entry,
    revision,
    headId: null,
    windowSeq: null,
    fence: 0,
    turn: null,
    createdAtMs: model.nowMs,
    updatedAtMs: typeof entry.updatedAt === "number" ? 0 : model.nowMs,
    records: [],
    keyed: new Map(),
    headsAt: new Map(),
    isTouchedByOthers: false,
  };
  noteHead(session);
  return session;
}

/** Call it after each change of the records or the head. */
export function noteHead(session: ModelSession): void {
  const { records, headsAt, headId } = session;
  const heads = headsAt.get(records.length) ?? new Set();
  headsAt.set(records.length, heads.add(headId));
}

/** An `updatedAt` that is further ahead of the store's clock is not accepted. */
export const maxAheadMs: number = 5 * 60 * 1000;

/** Replaces an entry. The revision grows by one, and the activity time moves neither back nor far ahead. */
export function replaceEntry(session: ModelSession, entry: SessionEntry, nowMs: number): void {
  session.revision += 1;
  const claimedMs: unknown = entry.updatedAt;
  if (typeof claimedMs !== "number") {
    session.entry = entry;
    return;
  }
  const isBelieved = claimedMs <= nowMs + maxAheadMs;
  session.updatedAtMs = Math.max(session.updatedAtMs, isBelieved ? claimedMs : nowMs);
  session.entry = isBelieved ? entry : withFields(entry, { updatedAt: session.updatedAtMs });
}

/** Returns an entry with fields set; a field that is `undefined` is removed. */
export function withFields(entry: SessionEntry, fields: Readonly<Record<string, unknown>>): SessionEntry {
  const all = new Map([...Object.entries(entry), ...Object.entries(fields)]);
  const kept = [...all].filter(([, value]) => value !== undefined);
  return plainJson(Object.fromEntries(kept)) as SessionEntry;
}

/** Returns what remains of a value as JSON, because stores keep nothing else. */
export function plainJson<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value)) as Value;
}
