import type { AppendResult } from "@throughline/core";
import { headAfterAppend } from "@throughline/core/store";
import type { AgentSessions } from "./agent-sessions.ts";
import { entryChange, ownHead, type AppendRequest, type HeldSession } from "./append-records.ts";
import type { SessionRow } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";

/** So many keys of appends without records are remembered. */
const maxKeyed = 256;

/**
 * An append without records: there is no line for it to travel in, so it is a line of the entries log. Under the locks
 * of the session and of the entries.
 */
export function appendEntry(
  context: StoreContext,
  agent: AgentSessions,
  held: HeldSession,
  { options, digest }: AppendRequest,
): Omit<AppendResult, "durability"> {
  const { row, transcript } = held;
  const nowMs = context.clock.nowMs();
  const head = headAfterAppend(transcript.head, [], options, nowMs);
  const change = options.entry === undefined ? null : entryChange(context, held, options.entry, nowMs);
  const revision = change?.revision ?? row.revision;
  const movesHead = options.turn !== undefined || options.rewindTo !== undefined || options.windowFromSeq !== undefined;
  const key = options.idempotencyKey;
  const next: SessionRow = {
    ...row,
    revision,
    ...(change === null ? {} : { entry: change.entry, updatedAtMs: change.updatedAtMs }),
    ...(movesHead ? { savedHead: head } : {}),
    ...(key === undefined ? {} : { keyed: [...(row.keyed ?? []), [key, digest, revision] as const].slice(-maxKeyed) }),
  };
  if (change !== null || movesHead || key !== undefined) agent.log.write({ op: "save", rows: [next] });
  if (movesHead) transcript.acceptSavedHead(head);
  if (change !== null && change.clampedMs !== null)
    context.emit({
      name: "updated-at-clamped",
      ref: held.ref,
      claimedMs: change.clampedMs,
      storedMs: change.updatedAtMs,
    });
  return { records: [], head: ownHead(head), revision, replayed: false };
}
