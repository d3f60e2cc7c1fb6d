import { assertKnownOptions, optionKinds, type OptionTable, quote, refused } from "@throughline/core/internal";
import type { MoveAction, RemoveOptions, SessionEvent } from "@throughline/core";
import type { SessionFrame } from "./session-frame.ts";
import { sessionRef, type SessionRef } from "@throughline/core";

/**
 * Refuses writes to an archived session.
 * @throws {ThroughlineError} SESSION_ARCHIVED
 */
export function assertNotArchived(ref: SessionRef): void {
  if (ref.archiveId === undefined) return;
  throw refused("SESSION_ARCHIVED", `The session ${quote(ref.key)} is archived and takes no writes.`, { ...ref });
}

/**
 * Describes a session at another address. The entry is bound to the key it is kept under, so a store with a codec must
 * encode it again.
 */
export interface MovePlan {
  /** Holds the session at its new address. */
  readonly frame: SessionFrame;
  /** Lists the events to announce after the write. */
  readonly events: readonly SessionEvent[];
}

type MoveFields = Readonly<Record<"kind" | "key", unknown>>;

/** `sessionRef` checks the key, so any value passes here. */
const moveTable: OptionTable<MoveFields> = {
  kind: optionKinds.required(optionKinds.oneOf(["rename", "archive", "restore"])),
  key: optionKinds.any,
};

/** @throws {ThroughlineError} INPUT_INVALID for an invalid move */
export function assertMoveAction(action: MoveAction): void {
  assertKnownOptions<MoveFields>("move", action, moveTable, "action");
}

/**
 * Decides where a session moves. `holderOf` returns the id of the current session of an address, or undefined.
 * @throws {ThroughlineError} INPUT_INVALID, SESSION_ARCHIVED, SESSION_EXISTS, KEY_AGENT_MISMATCH, KEY_INVALID
 */
export function planMove(
  frame: SessionFrame,
  action: MoveAction,
  holderOf: (ref: SessionRef) => string | undefined,
): MovePlan {
  assertMoveAction(action);
  if (action.kind !== "restore") assertNotArchived(frame.ref);
  if (action.kind === "archive") return planArchive(frame);
  const { namespace, agentId, key } = frame.ref;
  const ref =
    action.kind === "rename" ? sessionRef({ namespace, agentId, key: action.key }) : { namespace, agentId, key };
  const holder = holderOf(ref);
  // A session may be renamed to its own key. A session that holds its key is not archived and cannot be restored.
  if (holder !== undefined && (holder !== frame.sessionId || action.kind === "restore"))
    throw refused("SESSION_EXISTS", `A session holds the key ${quote(ref.key)}.`, { ...ref });
  return { frame: { ...frame, ref }, events: [] };
}

/**
 * Decides what removing a session does. Without `purge` the session is archived, unless it is archived already; with
 * `purge` it is deleted (null).
 */
export function planRemove(
  frame: SessionFrame,
  { purge = false }: RemoveOptions,
): { readonly frame: SessionFrame | null; readonly events: readonly SessionEvent[] } {
  if (!purge) return planArchive(frame);
  return { frame: null, events: [{ name: "session-removed", ref: frame.ref, sessionId: frame.sessionId }] };
}

/**
 * Decides which records a redaction replaces, in order of seq; a record named twice counts once. `seqOf` returns
 * undefined for an id that the session does not hold.
 * @throws {ThroughlineError} RECORD_NOT_FOUND, and then nothing is redacted
 */
export function planRedaction(
  { ref }: Pick<SessionFrame, "ref">,
  ids: readonly string[],
  seqOf: (id: string) => number | undefined,
): { readonly seqs: readonly number[]; readonly events: readonly SessionEvent[] } {
  const seqs = new Set<number>();
  for (const id of ids) {
    const seq = seqOf(id);
    if (seq === undefined) throw refused("RECORD_NOT_FOUND", `The session holds no record ${quote(id)}.`, { id });
    seqs.add(seq);
  }
  const inOrder = [...seqs].toSorted((one, other) => one - other);
  return { seqs: inOrder, events: [{ name: "records-redacted", ref, seqs: inOrder }] };
}

/** Moves the session to its archive address. An archived session stays where it is. */
export function planArchive(frame: SessionFrame): MovePlan {
  const { sessionId } = frame;
  if (frame.ref.archiveId !== undefined) return { frame, events: [] };
  const ref = { ...frame.ref, archiveId: sessionId };
  return { frame: { ...frame, ref }, events: [{ name: "session-archived", ref, sessionId }] };
}
