import type { ListQuery, MoveAction, ReadOptions, SessionEntry, SessionRef, SessionState } from "@throughline/core";
import type { ReadPayload } from "@throughline/core/internal";
import { isTombstone, redactionTombstone } from "@throughline/core/internal";
import { lineOf } from "./append-to-model.ts";
import {
  findSession,
  foundSession,
  ModelRefusal,
  newSession,
  noteHead,
  plainJson,
  replaceEntry,
  type ModelRecord,
  type ModelSession,
  type SessionModel,
} from "./session-model.ts";

/** @throws {ModelRefusal} */
export function saveInModel(
  model: SessionModel,
  ref: SessionRef,
  given: SessionEntry,
  ifRevision: number | null,
): ModelSession {
  const current = findSession(model, ref);
  if (current === undefined && ref.archiveId !== undefined) throw new ModelRefusal("SESSION_NOT_FOUND");
  if (ref.archiveId !== undefined) throw new ModelRefusal("SESSION_ARCHIVED");
  if ((current?.revision ?? null) !== ifRevision) throw new ModelRefusal("REVISION_CONFLICT");
  const entry = plainJson(given);
  if (current?.sessionId === entry.sessionId) {
    replaceEntry(current, entry, model.nowMs);
    return current;
  }
  claimSessionId(model, ref.agentId, entry.sessionId);
  const begun = newSession(model, ref, entry, current?.revision ?? 0);
  replaceEntry(begun, entry, model.nowMs);
  if (current !== undefined) archive(current);
  model.sessions.push(begun);
  return begun;
}

/** Ids that differ only in case collide, because some file systems do not distinguish them. */
function claimSessionId(model: SessionModel, agentId: string, sessionId: string): void {
  const holder = model.sessions.find(
    (other) => other.ref.agentId === agentId && other.sessionId.toLowerCase() === sessionId.toLowerCase(),
  );
  if (holder !== undefined)
    throw new ModelRefusal(holder.sessionId === sessionId ? "SESSION_EXISTS" : "ID_CASE_COLLISION");
}

function archive(session: ModelSession): void {
  session.ref = { ...session.ref, archiveId: session.sessionId };
}

/** @throws {ModelRefusal} */
export function moveInModel(model: SessionModel, ref: SessionRef, action: MoveAction): ModelSession {
  const session = foundSession(model, ref);
  if (action.kind !== "restore" && ref.archiveId !== undefined) throw new ModelRefusal("SESSION_ARCHIVED");
  if (action.kind === "archive") {
    archive(session);
    return session;
  }
  const { namespace, agentId } = ref;
  const key = action.kind === "rename" ? action.key : ref.key;
  // A rename validates the new key with the rules for new keys, which forbid line separators. An existing key is not
  // validated again.
  if (action.kind === "rename" && key.includes("\u2028")) throw new ModelRefusal("KEY_INVALID");
  const named = /^agent:([^:]+):/.exec(key)?.[1] ?? agentId;
  if (named !== agentId) throw new ModelRefusal("KEY_AGENT_MISMATCH");
  const target = { namespace, agentId, key };
  const holder = findSession(model, target);
  if (holder !== undefined && (holder !== session || action.kind === "restore"))
    throw new ModelRefusal("SESSION_EXISTS");
  session.ref = target;
  return session;
}

/** @throws {ModelRefusal} */
export function removeInModel(model: SessionModel, ref: SessionRef, purge: boolean): void {
  const session = foundSession(model, ref);
  if (purge) model.sessions.splice(model.sessions.indexOf(session), 1);
  else archive(session);
}

/** @throws {ModelRefusal} */
export function redactInModel(
  model: SessionModel,
  ref: SessionRef,
  ids: readonly string[],
  reason: string,
): readonly number[] {
  const { records } = foundSession(model, ref);
  const seqs = ids.map((id) => 1 + records.findIndex(({ record }) => record.id === id));
  if (seqs.includes(0)) throw new ModelRefusal("RECORD_NOT_FOUND");
  const inOrder = [...new Set(seqs)].toSorted((one, other) => one - other);
  for (const seq of inOrder) redact(records[seq - 1] as ModelRecord, reason, model.nowMs);
  return inOrder;
}

function redact(held: ModelRecord, reason: string, redactedAtMs: number): void {
  if (isTombstone(held.record)) return;
  const { side, bytes } = held;
  held.record = plainJson(redactionTombstone(held.record, { side, bytes, reason, redactedAtMs }));
  held.bytes = Buffer.byteLength(lineOf(held.record));
  held.source = null;
  held.isSourceCanonical = true;
}

/**
 * Applies a fork to the model; `made` is the store's result. A partial fork may have any head that the origin had at
 * that point, and may state a window or none. Several results are thus correct, and the model adopts the store's if it
 * is one of them.
 * @throws {ModelRefusal} with every reason that holds: the contract gives no order
 */
export function forkInModel(
  model: SessionModel,
  ref: SessionRef,
  target: SessionRef,
  options: { readonly atSeq?: number | undefined; readonly sessionId: string },
  made: SessionState | null,
): ModelSession {
  const origin = foundSession(model, ref);
  const { sessionId } = options;
  const reasons: ModelRefusal[] = [];
  if (findSession(model, target) !== undefined) reasons.push(new ModelRefusal("SESSION_EXISTS"));
  try {
    claimSessionId(model, target.agentId, sessionId);
  } catch (error) {
    reasons.push(error as ModelRefusal);
  }
  if (reasons.length > 0) throw new ModelRefusal(...reasons.flatMap(({ codes }) => codes));
  const atSeq = Math.min(options.atSeq ?? Infinity, origin.records.length);
  const { agentId, key } = origin.ref;
  const forkedFrom = { agentId, key, sessionId: origin.sessionId, atSeq };
  const fork = newSession(model, target, { sessionId, forkedFrom }, 1);
  fork.headsAt.clear();
  fork.records.push(...origin.records.slice(0, atSeq));
  for (const [seq, heads] of origin.headsAt) if (seq <= atSeq) fork.headsAt.set(seq, new Set(heads));
  const isWhole = atSeq === origin.records.length;
  const lastMainId = fork.records.findLast(({ side }) => !side)?.record.id ?? null;
  const rightHeads = isWhole ? [origin.headId] : [lastMainId, ...(origin.headsAt.get(atSeq) ?? [])];
  const toldHead = made?.head.headId;
  fork.headId = toldHead !== undefined && rightHeads.includes(toldHead) ? toldHead : (rightHeads[0] ?? null);
  const toldWindow = made?.head.windowSeq ?? null;
  fork.windowSeq = isWhole ? origin.windowSeq : toldWindow !== null && toldWindow > atSeq ? null : toldWindow;
  if (made !== null && (model.isClockSetBack || origin.isTouchedByOthers))
    fork.updatedAtMs = Math.max(fork.updatedAtMs, made.updatedAtMs);
  fork.isTouchedByOthers = origin.isTouchedByOthers;
  noteHead(fork);
  model.sessions.push(fork);
  return fork;
}

/** Returns the records of a read, each with its seq. @throws {ModelRefusal} */
export function readInModel(
  model: SessionModel,
  ref: SessionRef,
  options: ReadOptions<ReadPayload>,
): readonly (readonly [seq: number, held: ModelRecord])[] {
  const { afterSeq = 0, beforeSeq = Infinity, order = "ascending", limit = Infinity } = options;
  const found = foundSession(model, ref)
    .records.map((held, index) => [index + 1, held] as const)
    .filter(([seq]) => seq > afterSeq && seq < beforeSeq);
  if (order === "descending") found.reverse();
  return found.slice(0, limit);
}

/** Returns all sessions of a list, over all its pages. */
export function listInModel(model: SessionModel, query: ListQuery): readonly ModelSession[] {
  const {
    agentId,
    state = "active",
    keyPrefix = "",
    sinceMs = -Infinity,
    untilMs = Infinity,
    sort = "updated",
  } = query;
  const before = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);
  return model.sessions
    .filter(({ ref, updatedAtMs }) => {
      const isState = state === "any" || (state === "archived") === (ref.archiveId !== undefined);
      const isInTime = updatedAtMs >= sinceMs && updatedAtMs < untilMs;
      return isState && isInTime && (agentId ?? ref.agentId) === ref.agentId && ref.key.startsWith(keyPrefix);
    })
    .toSorted(
      (one, other) =>
        (sort === "updated" ? other.updatedAtMs - one.updatedAtMs : 0) ||
        before(one.ref.agentId, other.ref.agentId) ||
        before(one.ref.key, other.ref.key) ||
        before(one.sessionId, other.sessionId),
    );
}
