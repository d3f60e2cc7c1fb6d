import { sessionRef, type SessionRef, type SessionStore } from "@throughline/core";
import { locateSession } from "@throughline/core/internal";
import { checkSessionName } from "./check-arguments.ts";
import type { SessionName } from "./sessions.ts";

/**
 * Finds the address of a named session of the main agent. `label` is the label of the session if it has to be created.
 */
export async function locateNamed(
  call: string,
  store: SessionStore,
  session: SessionName,
  signal?: AbortSignal,
): Promise<{ readonly ref: SessionRef; readonly label: string | null }> {
  checkSessionName(call, session);
  if (typeof session !== "string") return { ref: sessionRef(session), label: null };
  const scope = { namespace: "", agentId: "main", isAgentGiven: false };
  return locateSession(store, session, scope, signal === undefined ? {} : { signal });
}
