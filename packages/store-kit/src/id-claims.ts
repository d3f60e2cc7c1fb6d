import { assertKeyFits } from "./assert-arguments.ts";
import { assertAgentId, assertNamespace, assertSessionId, quote, refused } from "@throughline/core/internal";
import type { SessionFrame } from "./session-frame.ts";

/** Names the session that claims the ids. */
type IdOwner = Pick<SessionFrame, "ref" | "sessionId">;

/**
 * Refuses ids of a new session that are invalid, in use, or differ from other ids only by case. On some file systems
 * such ids would be the same file. `holders` are the ids in use that are equal under case folding: the agent's in its
 * namespace, the session's in its agent.
 * @throws {ThroughlineError} NAMESPACE_INVALID, AGENT_ID_INVALID, SESSION_ID_INVALID, KEY_INVALID, SESSION_EXISTS,
 * ID_CASE_COLLISION
 */
export function assertIdsFree(
  { ref, sessionId }: IdOwner,
  holders: { readonly agentId: string | undefined; readonly sessionId: string | undefined },
): void {
  assertNamespace(ref.namespace);
  assertAgentId(ref.agentId);
  assertSessionId(sessionId);
  assertKeyFits(ref.key);
  assertOneSpelling(ref.agentId, holders.agentId);
  assertOneSpelling(sessionId, holders.sessionId);
  if (holders.sessionId !== undefined)
    throw refused("SESSION_EXISTS", `The session id ${quote(sessionId)} is in use.`, { id: sessionId });
}

function assertOneSpelling(id: string, holder: string | undefined): void {
  if (holder === undefined || holder === id) return;
  throw refused("ID_CASE_COLLISION", `The id ${quote(id)} meets ${quote(holder)}.`, { id, holder });
}
