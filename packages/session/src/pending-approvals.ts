import type { SessionEntry, SessionHead } from "@throughline/core";
import { isFields, waitingCalls } from "@throughline/core/internal";
import type { PendingApproval } from "./turn-mark.ts";
import type { WindowFacts } from "./window-facts.ts";

/** Holds what decides which calls of a session wait for a decision. */
export interface ApprovalPlace {
  readonly head: SessionHead;
  readonly entry: SessionEntry;
  readonly facts: WindowFacts;
}

/**
 * Returns true when the open calls may still be decided on here. Only the session that asked can run them: a fork
 * cannot, and a session that was archived or rewound since cannot either.
 */
export function isDecidable({ head, entry, facts }: ApprovalPlace): boolean {
  if (facts.openCalls.seq <= sharedSeq(entry)) return false;
  const state = facts.turn?.mark.state;
  return state !== "done" && (state !== "waiting" || waitingCalls({ entry, head }) !== null);
}

/**
 * Lists the open calls without a decision whose deadline is not over. Meaningful only while no turn runs.
 *
 * @param nowMs the time of this process, in UTC milliseconds
 */
export function pendingApprovals(place: ApprovalPlace, nowMs: number): readonly PendingApproval[] {
  const { openCalls, turn } = place.facts;
  if (openCalls.size === 0 || !isDecidable(place)) return [];
  return openCalls.calls
    .filter(({ id }) => openCalls.stateOf(id) === "undecided" && openCalls.expiredAtMs(id, nowMs) === null)
    .map((call) => {
      const question = openCalls.waiting(call.id);
      return {
        callId: call.id,
        tool: call.name,
        arguments: call.arguments,
        facts: question?.facts ?? {},
        askedAtMs: question?.askedMs ?? openCalls.tsMs,
        expiresAtMs: question?.expiresAtMs ?? null,
        turnId: question?.turnId ?? turn?.mark.turnId ?? "",
      };
    });
}

/** Returns the seq of the last record that a fork shares with its origin; 0 for any other session. */
export function sharedSeq({ forkedFrom }: SessionEntry): number {
  return isFields(forkedFrom) && typeof forkedFrom["atSeq"] === "number" ? forkedFrom["atSeq"] : 0;
}
