import { assertKnownOptions, optionKinds, type OptionTable, quote, refused } from "@throughline/core/internal";
import type { MoveAction, RemoveOptions, SessionEvent } from "@throughline/core";
import type { SessionFrame } from "./session-frame.ts";
import { sessionRef, type SessionRef } from "@throughline/core";

/** Refuses writes to an archived session. @throws {ThroughlineError} SESSION_ARCHIVED */
export function assertNotArchived(ref: SessionRef): void {
  if (ref.archiveId === undefined) return;
  throw refused("SESSION_ARCHIVED", `The session ${quote(ref.key)} is archived and takes no writes.`, { ...ref });
}

/**
 * A session at another address. The entry is bound to the key it is kept under: a store with a codec encodes it again.
 */
export interface MovePlan {
  /** The session at its new address. */
  readonly frame: SessionFrame;
  /** To be announced once it is written. */
  readonly events: readonly SessionEvent[];
}

type MoveFields = Readonly<Record<"kind" | "key", unknown>>;

/** What a key has to be is `sessionRef`'s to say. */
const moveTable: OptionTable<MoveFields> = {
  kind: optionKinds.required(optionKinds.oneOf(["rename", "archive", "restore"])),
  key: optionKinds.any,
};

/** @throws {ThroughlineError} INPUT_INVALID for an invalid move */
export function assertMoveAction(action: MoveAction): void {
  assertKnownOptions<MoveFields>("move", action, moveTable, "action");
}

/**
 * Where a session goes. `holderOf` gives the id of the current session of an address, or undefined.
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
  // A session may be renamed to the key it has; one that holds its key is not archived and cannot be restored.
  if (holder !== undefined && (holder !== frame.sessionId || action.kind === "restore"))
    throw refused("SESSION_EXISTS", `A session holds the key ${quote(ref.key)}.`, { ...ref });
  return { frame: { ...frame, ref }, events: [] };
}

/** What removing a session does: it is archived, where it is not yet, or with `purge` gone (null). */
export function planRemove(
  frame: SessionFrame,
  { purge = false }: RemoveOptions,
): { readonly frame: SessionFrame | null; readonly events: readonly SessionEvent[] } {
  if (!purge) return planArchive(frame);
  return { frame: null, events: [{ name: "session-removed", ref: frame.ref, sessionId: frame.sessionId }] };
}

/**
 * Which records a redaction replaces, in order of seq; a record named twice counts once. `seqOf` gives undefined for
 * an id the session does not hold.
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

/** The session under its archive address; one that lies there already stays as it is. */
export function planArchive(frame: SessionFrame): MovePlan {
  const { sessionId } = frame;
  if (frame.ref.archiveId !== undefined) return { frame, events: [] };
  const ref = { ...frame.ref, archiveId: sessionId };
  return { frame: { ...frame, ref }, events: [{ name: "session-archived", ref, sessionId }] };
}
