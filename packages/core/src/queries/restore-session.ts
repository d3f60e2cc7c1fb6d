import { assertKnownOptions, optionKinds, type OptionTable } from "../option-checks.ts";
import { ThroughlineError } from "../throughline-error.ts";
import type { ListQuery, SessionStore } from "../session-store.ts";
import type { SessionState } from "../session-state.ts";
import { listSessions } from "./resolve-session.ts";

const queryTable: OptionTable<Pick<ListQuery, "namespace" | "agentId" | "signal">> = {
  namespace: optionKinds.text,
  agentId: optionKinds.text,
  signal: optionKinds.signal,
};

/**
 * Makes an archived session the current session of its key again.
 * @param archiveId the archive's id, or the id of the archived session
 * @param query which sessions are searched. Default: those of every agent in the namespace ""
 * @throws {ThroughlineError} SESSION_NOT_FOUND; SESSION_EXISTS while another session has the key; and what the store
 * throws
 */
export async function restoreSession(
  store: SessionStore,
  archiveId: string,
  query: Pick<ListQuery, "namespace" | "agentId" | "signal"> = {},
): Promise<SessionState> {
  assertKnownOptions("restoreSession", query, queryTable, "query");
  for await (const state of listSessions(store, { ...query, state: "archived", sort: "key", limit: 1000 })) {
    if (state.ref.archiveId === archiveId || state.sessionId === archiveId)
      return store.move(state.ref, { kind: "restore" });
  }
  throw new ThroughlineError("SESSION_NOT_FOUND", `No archived session has the id ${JSON.stringify(archiveId)}.`, {
    outcome: "not-applied",
    details: { archiveId },
  });
}
