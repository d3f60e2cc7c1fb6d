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
 * What a store has to hold, as plain data, and what its contract says of each operation, in as few words as it takes.
 * It is written from `session-store.ts` alone and shares no decision with the stores: a rule that is wrong in core's plans
 * would else be wrong on both sides.
 */

/** A record, shared by the sessions that have it in common: a redaction changes it for all of them. */
export interface ModelRecord {
  record: SessionRecord;
  /** The line it came in; null: its own JSON. */
  source: RecordSource | null;
  isSourceCanonical: boolean;
  bytes: number;
  readonly side: boolean;
  readonly tsMs: number | null;
  /** Null: another program wrote it. */
  readonly storedAtMs: number | null;
}

/** The answer to a keyed append, and the drafts it was given for. */
interface ModelKeyedAppend {
  readonly drafts: readonly AppendDraft[];
  readonly answer: ModelAppendAnswer;
}

/** Of an append's result what does not depend on the durability asked for. */
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
  /** The record with seq n at n - 1. */
  readonly records: ModelRecord[];
  readonly keyed: Map<string, ModelKeyedAppend>;
  /** Where the head stood, by how many records the session had then: a fork up to there may stand at any of them. */
  readonly headsAt: Map<number, Set<string | null>>;
  /** Another program changed it: how often that counts as a revision and as activity is the store's matter. */
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

/** The model's refusal: the store has to answer with one of these codes. */
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

/** A session that begins. */
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

/** To be called after each change of records or head. */
export function noteHead(session: ModelSession): void {
  const { records, headsAt, headId } = session;
  const heads = headsAt.get(records.length) ?? new Set();
  headsAt.set(records.length, heads.add(headId));
}

/** More than this ahead of the store's clock a writer's `updatedAt` is not believed. */
const maxAheadMs = 5 * 60 * 1000;

/** Puts an entry in place of the old one: one revision more, and an activity time that neither goes back nor far ahead. */
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

/** An entry with fields set, or taken out where they are `undefined`. */
export function withFields(entry: SessionEntry, fields: Readonly<Record<string, unknown>>): SessionEntry {
  const all = new Map([...Object.entries(entry), ...Object.entries(fields)]);
  const kept = [...all].filter(([, value]) => value !== undefined);
  return plainJson(Object.fromEntries(kept)) as SessionEntry;
}

/** What JSON makes of a value: stores keep no more of it. */
export function plainJson<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value)) as Value;
}
