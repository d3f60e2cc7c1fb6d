import type { SessionHead } from "@throughline/core";
import type { AppendPlan, AppendRequest } from "@throughline/core/store";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import type { HeldSession } from "./held-session.ts";
import type { KeptHead, SessionRow } from "./session-row.ts";

/**
 * An append without records: there is no line for it to travel in, so it is a line of the entries log. Under the locks
 * of the session and of the entries.
 */
export function writeEntry(
  agent: AgentSessionFiles,
  { row, transcript }: HeldSession,
  { options, keyed }: AppendRequest,
  { frame, entry }: AppendPlan,
  nowMs: number,
): void {
  const { head, revision, updatedAtMs } = frame;
  const movesHead = options.turn !== undefined || options.rewindTo !== undefined || options.windowFromSeq !== undefined;
  if (entry === null && !movesHead && keyed === null) return;
  const next: SessionRow = {
    ...row,
    revision,
    ...(entry === null ? {} : { entry, updatedAtMs }),
    ...(movesHead ? { savedHead: head } : {}),
  };
  const { sessionId } = row;
  const append = keyed === null ? null : ([keyed.key, keyed.digest, revision, keptHead(head), nowMs] as const);
  agent.log.write({
    op: "save",
    rows: [next],
    ...(append === null ? {} : { keyed: [{ sessionId, appends: [append] }] }),
  });
  if (movesHead) transcript.acceptSavedHead(head);
}

function keptHead({ lastSeq, headId, windowSeq, fence, turn }: SessionHead): KeptHead {
  return [lastSeq, headId, windowSeq, fence, turn];
}
